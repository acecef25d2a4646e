"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from smartcpd._data.tables.wishes import parted

TABLE = "Tables"
"""The panel of the help for options that only tables have."""

Modes = Annotated[
    str | None,
    typer.Option(
        "--modes",
        metavar="COLUMN,...",
        help="Columns of a table that become modes. 'time@hour' is a column with a bin of its own; "
        "a name with a comma in it stands in double quotes.",
        rich_help_panel=TABLE,
    ),
]
Value = Annotated[
    str | None,
    typer.Option(
        "--value",
        metavar="COLUMN",
        help="Column of numbers that are added up; without it events are counted.",
        rich_help_panel=TABLE,
    ),
]
Agg = Annotated[
    str,
    typer.Option(
        "--agg",
        metavar="HOW",
        help="What a cell holds: auto, count, sum, mean or any.",
        rich_help_panel=TABLE,
    ),
]
Bin = Annotated[
    list[str] | None,
    typer.Option(
        "--bin",
        metavar="MODE=BIN,...",
        help="1w, 1d, 1h, 15min, 1mo, hour, weekday, month for dates; "
        "20q (quantiles) or 10 (equal ranges) for numbers.",
        rich_help_panel=TABLE,
    ),
]
Top = Annotated[
    list[str] | None,
    typer.Option(
        "--top",
        metavar="MODE=K,...",
        help="Keep the K most frequent labels.",
        rich_help_panel=TABLE,
    ),
]
Rest = Annotated[
    str,
    typer.Option(
        "--rest",
        metavar="HOW",
        help="What becomes of the other labels: gather (in one row) or drop.",
        rich_help_panel=TABLE,
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="SQL condition; only rows that fulfil it.",
        rich_help_panel=TABLE,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a text file names its columns; found out by default. "
        "Without names they are column0, column1, ...",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]


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


def completer(names: Iterable[str]) -> Any:
    """Make a shell completion from the names of a registry."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete
