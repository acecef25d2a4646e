"""The options that say how a table becomes a tensor, and how their text is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from smartcpd._app.cli.options import flag
from smartcpd._data.tables.wishes import joined, parted

option = partial(typer.Option, rich_help_panel="Tables")

Header = Annotated[
    bool | None,
    option(
        "--header/--no-header",
        help="Whether the first line of a text file names its columns; found out by default. "
        "Without names they are column0, column1, ...",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """The options that make a tensor of a table, by the names that `from_table` has for them."""

    modes: Annotated[
        str | None,
        option(
            "--modes",
            metavar="COLUMN,...",
            help="Columns of a table that become modes. 'time@hour' is a column with a bin of its "
            "own; a name with a comma in it stands in double quotes.",
        ),
    ] = None
    value: Annotated[
        str | None,
        option(
            "--value",
            metavar="COLUMN",
            help="Column of numbers that are added up; without it events are counted.",
        ),
    ] = None
    agg: Annotated[
        str,
        option("--agg", metavar="HOW", help="What a cell holds: auto, count, sum, mean or any."),
    ] = "auto"
    bins: Annotated[
        list[str] | None,
        option(
            "--bin",
            metavar="MODE=BIN,...",
            help="1w, 1d, 1h, 15min, 1mo, hour, weekday, month for dates; "
            "20q (quantiles) or 10 (equal ranges) for numbers.",
        ),
    ] = None
    top: Annotated[
        list[str] | None,
        option("--top", metavar="MODE=K,...", help="Keep the K most frequent labels."),
    ] = None
    rest: Annotated[
        str,
        option(
            "--rest",
            metavar="HOW",
            help="What becomes of the other labels: gather (in one row) or drop.",
        ),
    ] = "gather"
    where: Annotated[
        str | None,
        option("--where", metavar="CONDITION", help="SQL condition; only rows that fulfil it."),
    ] = None
    header: Header = None

    def __post_init__(self) -> None:
        self.parameters()  # so that a wrong text is refused before anything is read

    def parameters(self) -> dict[str, Any]:
        """Return the options as `from_table` takes them; a wrong text is a usage error."""
        read = {"bins": pairs("--bin", self.bins), "top": whole_numbers("--top", self.top)}
        return vars(self) | read

    def chosen(self) -> dict[str, Any]:
        """Return the options that the user gave."""
        return {
            name: value
            for name, value in self.parameters().items()
            if value not in (None, "", {}) and value != getattr(TableOptions, name)
        }

    def words(self) -> list[str]:
        """Return the options that the user gave, as words of a command line."""
        found = []
        for name, value in self.chosen().items():
            if name == "header":
                found.append("--header" if value else "--no-header")
                continue
            text = value
            if isinstance(value, Mapping):
                text = joined(f"{k}={v}" for k, v in value.items())
            found += [flag(name), str(text)]
        return found


def pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """Read ``a=1,b=2`` as a dictionary; a wrong text is a usage error."""
    found: dict[str, str] = {}
    for part in (part for text in given or () for part in parted(text)):
        name, equals, value = (piece.strip() for piece in part.rpartition("="))
        if not (name and equals and value):
            raise typer.BadParameter(
                f"{part!r} is not of the form MODE=VALUE, such as {option} date=1w"
                if option == "--bin"
                else f"{part!r} is not of the form MODE=NUMBER, such as {option} area=50",
                param_hint=option,
            )
        found[name] = value
    return found


def whole_numbers(option: str, given: Iterable[str] | None) -> dict[str, int]:
    """Read ``a=1,b=2`` as a dictionary of whole numbers; a wrong text is a usage error."""
    found = {}
    for name, value in pairs(option, given).items():
        if not value.isdigit() or int(value) < 1:
            raise typer.BadParameter(
                f"{name}={value}: {value!r} is not a whole number of at least 1", param_hint=option
            )
        found[name] = int(value)
    return found
