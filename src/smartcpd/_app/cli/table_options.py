"""The options that say how a table becomes a tensor, and how their text is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from smartcpd._app.cli.options import flag
from smartcpd._data.tables.reading import ALL
from smartcpd._data.tables.wishes import joined, parted

option = partial(typer.Option, rich_help_panel="Tables")
writing = partial(typer.Option, rich_help_panel="How a table is written (found out by default)")

Header = Annotated[
    bool | None,
    writing(
        "--header/--no-header",
        help="Whether the first line of a text file names its columns; without names they are "
        "column0, column1, ...",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    writing("--delimiter", metavar="SIGN", help="What parts columns: ',', ';', 'tab', 'space' ..."),
]
Encoding = Annotated[
    str | None,
    writing("--encoding", metavar="NAME", help="Such as utf-8, utf-16, latin-1, cp1252."),
]
DateFormat = Annotated[
    list[str] | None,
    writing(
        "--date-format",
        metavar="[COLUMN=]FORMAT",
        help="Such as '%d/%m/%Y %H:%M'; or day-first, month-first, year-first, epoch, epoch-ms, "
        "epoch-us, epoch-ns, excel.",
    ),
]
Decimal = Annotated[
    str | None, writing("--decimal", metavar="SIGN", help="The decimal sign of numbers.")
]
Thousands = Annotated[
    str | None,
    writing("--thousands", metavar="SIGN", help="Between groups of three digits; 'space', 'none'."),
]
Missing = Annotated[
    list[str] | None,
    writing(
        "--na",
        metavar="WORD,...",
        help="Words that mean a missing value, in place of NA, N/A, null and the like.",
    ),
]
Melt = Annotated[
    str | None,
    writing(
        "--melt",
        metavar="FIRST:LAST=MODE",
        help="For wide tables: columns that become the labels of a mode, such as JAN:DEC=month; "
        "their numbers become the column 'value'.",
    ),
]


class Chosen:
    """What options of tables have in common: their texts are read, and written again."""

    def __post_init__(self) -> None:
        self.parameters()  # so that a wrong text is refused before anything is read

    def parameters(self) -> dict[str, Any]:
        """Return the options as the library takes them; a wrong text is a usage error."""
        given = vars(self)
        read: dict[str, Any] = {
            "date_format": formats(given["date_format"]),
            "na": None if given["na"] is None else words_of(given["na"]),
            "melt": melted(given["melt"]),
        }
        if "bins" in given:
            read["bins"] = pairs("--bin", given["bins"])
            read["top"] = whole_numbers("--top", given["top"])
        return given | read

    def chosen(self) -> dict[str, Any]:
        """Return the options that the user gave."""
        return {
            name: value
            for name, value in self.parameters().items()
            if value not in (None, "", {}) and value != getattr(type(self), name)
        }

    def words(self) -> list[str]:
        """Return the options that the user gave, as words of a command line."""
        found = []
        for name, value in self.chosen().items():
            if name == "header":
                found.append("--header" if value else "--no-header")
            elif value is True:
                found.append(flag(name))
            elif name == "date_format":
                for column, text in value.items():
                    found += [flag(name), text if column == ALL else f"{column}={text}"]
            elif name == "melt":
                ((mode, columns),) = value.items()
                found += [flag(name), f"{joined(columns)}={mode}"]
            elif isinstance(value, Mapping):
                found += [flag(name), joined(f"{k}={v}" for k, v in value.items())]
            else:
                found += [flag(name), joined(value) if isinstance(value, list) else str(value)]
        return found


@dataclass(frozen=True)
class ReadingOptions(Chosen):
    """The options that say how a table is written."""

    header: Header = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    date_format: DateFormat = None
    decimal: Decimal = None
    thousands: Thousands = None
    na: Missing = None
    melt: Melt = None


@dataclass(frozen=True)
class TableOptions(Chosen):
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
            "20q (quantiles), 10 (equal ranges) or 0.01 (ranges of that width) for numbers.",
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
    absent: Annotated[
        str | None,
        option(
            "--absent",
            metavar="WHAT",
            help="What cells without rows are: zero, or missing; by default missing for "
            "measurements.",
        ),
    ] = None
    allow_lost_rows: Annotated[
        bool,
        option(
            "--allow-lost-rows",
            help="Go on where more than a fifth of the rows cannot be used.",
        ),
    ] = False
    header: Header = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    date_format: DateFormat = None
    decimal: Decimal = None
    thousands: Thousands = None
    na: Missing = None
    melt: Melt = None


def formats(given: Iterable[str] | None) -> dict[str, str] | None:
    """Read ``FORMAT`` or ``COLUMN=FORMAT``."""
    if given is None:
        return None
    found = {}
    for text in given:
        column, equals, form = text.partition("=")
        own = bool(equals) and "%" not in column
        found[column.strip() if own else ALL] = form.strip() if own else text.strip()
    return found


def words_of(given: Iterable[str]) -> list[str]:
    """Read words with commas between them."""
    return [word for text in given for word in parted(text)]


def melted(given: str | None) -> dict[str, list[str]] | None:
    """Read ``FIRST:LAST=MODE``; a wrong text is a usage error."""
    if given is None:
        return None
    columns, equals, mode = (piece.strip() for piece in given.rpartition("="))
    if not (columns and equals and mode):
        raise typer.BadParameter(
            f"{given!r} is not of the form FIRST:LAST=MODE, such as --melt JAN:DEC=month",
            param_hint="--melt",
        )
    return {mode: parted(columns)}


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
