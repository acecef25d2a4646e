"""Options that several commands share, and options in groups."""

from __future__ import annotations

import functools
import inspect
import re
import shlex
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

PARAMETER = re.compile(
    r"\b(absent|agg|allow_lost_rows|bins|consensus|constraint|cv|date_format|decimal|delimiter|"
    r"encoding|fiber_mode|header|holdout|loss|losses|max_time|melt|modes|n_init|n_jobs|n_restarts|n_threads|na|random_state|rank|"
    r"rest|thousands|top|value|where)=(True\b|(?=[,).\s])|\{'([^']*)': '?([^'}]*)'?\})?"
)
"""What messages of the library say of parameters that options stand for."""
NAMED = re.compile(
    r"(?:^(?=(?:absent|agg|decimal|delimiter|rest|thousands) must be )|(?<=leave it out of )"
    r"(?=(?:modes|top)\b))(\w+)"
)
"""Parameters that messages name without a value."""

RunPath = Annotated[
    Path, typer.Argument(help="Folder of a run, or a model saved in Python.", metavar="DIR")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the last line alone, no progress.")
]


def flag(parameter: str) -> str:
    """Return the option that stands for a parameter of the library."""
    return FLAGS.get(parameter, "--" + parameter.replace("_", "-"))


def in_flags(sentence: str) -> str:
    """Return a sentence of the library with options in place of parameters."""

    def as_option(found: re.Match[str]) -> str:
        if found[3] is not None:
            return f"{flag(found[1])} {shlex.quote(f'{found[3]}={found[4]}')}"
        return flag(found[1]) + ("" if found[2] is not None else " ")

    for said, meant in (
        ("fit without checkpoints", "add --checkpoint-every 0"),
        (
            "more time or epochs, or go on from here with init= this model",
            "more time by --max-time",
        ),
        (
            "Go on with init= this model; if it was fitted under constraints, or with weights or a "
            "mask, pass them here as well",
            "Fit it again with --effort 2, or with another --seed",
        ),
        ("(mask=, SparseTensor(missing=))", "(rows with a count of 0, and --absent missing)"),
        ("absent='unobserved'", "--absent missing"),
        ("raise max_time for", "raise --max-time for"),
        ("raise max_epochs for", "in Python, raise max_epochs for"),
        ("header=False", "--no-header"),
        ("header=True", "--header"),
    ):
        sentence = sentence.replace(said, meant)
    sentence = NAMED.sub(lambda found: flag(found[1]), sentence)
    return PARAMETER.sub(as_option, sentence)


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
