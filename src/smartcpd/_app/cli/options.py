"""Options that several commands share, and options in groups."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

FLAGS = {
    "bins": "--bin",
    "random_state": "--seed",
    "n_threads": "--threads",
    "n_jobs": "--jobs",
    "n_restarts": "--restarts",
}
"""The options that have another name than the parameters of the library that they stand for."""

RunPath = Annotated[Path, typer.Argument(help="Folder of a run.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]


def flag(parameter: str) -> str:
    """Return the option that stands for a parameter of the library."""
    return FLAGS.get(parameter, "--" + parameter.replace("_", "-"))


def ungrouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command for typer, which knows no groups of options: where a parameter is a
    dataclass, the command that is returned has a parameter for each of its fields.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind: type[Any] = parameter.annotation
        if is_dataclass(kind):
            groups[parameter.name] = kind
            parameters += inspect.signature(kind, eval_str=True).parameters.values()
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    by_name = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return run


def completer(names: Iterable[str]) -> Any:
    """Make a shell completion from the names of a registry."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete
