"""Every public name of smartcpd, from its modules' lists: what the reference must have."""

from __future__ import annotations

import inspect

import smartcpd

REGISTRIES = ("constraints", "losses", "mirrors", "sampling", "steps")
"""Modules whose pieces are public by the names they are registered under."""


def public_names() -> set[str]:
    """Return full names: those of the root, of its public modules, and of registered pieces."""
    found = set()
    for name in dir(smartcpd):
        member = getattr(smartcpd, name)
        if not inspect.ismodule(member):
            found.add(f"smartcpd.{name}")
            continue
        found |= {f"smartcpd.{name}.{inner}" for inner in member.__all__}
        if name in REGISTRIES:
            classes = member.registry.classes.values()
            found |= {f"{cls.__module__}.{cls.__name__}" for cls in classes}
    return found
