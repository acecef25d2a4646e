"""Reference pages of losses, constraints, maps, steps and samplers, from what is registered."""

from __future__ import annotations

import inspect
from importlib import import_module

KINDS = {
    "losses": ("Losses", "A loss says how data scatters about the model."),
    "constraints": ("Constraints", "A constraint says what the columns of a factor may be."),
    "mirrors": ("Mirror maps", "A mirror map is the geometry in which steps are made."),
    "steps": ("Step rules", "A step rule says how long a step is, entry by entry."),
    "sampling": ("Samplers", "A sampler says which cells a step reads."),
}


def piece_page(package: str) -> str:
    """Markdown about all pieces of a kind: those with names, then what is public besides."""
    title, sentence = KINDS[package]
    module = import_module(f"smartcpd.{package}")
    parts = [
        f"# {title}\n",
        f"{sentence}\n",
        "```{eval-rst}",
        f".. currentmodule:: smartcpd.{package}\n",
    ]
    for name in module.__all__:
        parts += _entry(f"smartcpd.{package}.{name}", getattr(module, name))
    parts.append("```\n")
    parts.append("## By name\n")
    for name, cls in module.registry.classes.items():
        parts += [
            f"### {name}\n",
            "```{eval-rst}",
            *_entry(f"{cls.__module__}.{cls.__name__}", cls, brief=True),
        ]
        parts.append("```\n")
    return "\n".join(parts)


def _entry(path: str, thing: object, brief: bool = False) -> list[str]:
    if inspect.isclass(thing):
        return [f".. autoclass:: {path}", *([] if brief else ["   :members:"]), ""]
    if callable(thing):
        return [f".. autofunction:: {path}", ""]
    return [f".. autodata:: {path}", "   :no-value:", ""]
