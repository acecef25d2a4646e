"""Every public name of smartcpd, from its modules' lists: what the reference must have."""

from __future__ import annotations

import inspect

import smartcpd

REGISTRIES = ("constraints", "losses", "mirrors", "sampling", "steps")
"""Modules whose pieces are public by the names they are registered under."""


def public_names() -> set[str]:
    """Return full names: those of the root, of its public modules, and of registered pieces."""
    members = {name: getattr(smartcpd, name) for name in dir(smartcpd)}
    found = {f"smartcpd.{name}" for name, it in members.items() if not inspect.ismodule(it)}
    modules = {name: it for name, it in members.items() if inspect.ismodule(it)}
    for name, member in modules.items():
        inside = (inner for inner in member.__all__ if inner not in members)  # listed by the root
        found |= {f"smartcpd.{name}.{inner}" for inner in inside}
        if name in REGISTRIES:
            classes = member.registry.classes.values()
            found |= {f"{cls.__module__}.{cls.__name__}" for cls in classes}
    return found
