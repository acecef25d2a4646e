"""Types of columns, and the SQL that reads them as dates, numbers or labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from smartcpd._data.tables.missing import clean_label
from smartcpd._data.tables.sql import X, identifier


class Family(StrEnum):
    """The kinds of types that need different SQL, by the names that sentences use."""

    DATE = "dates"
    MOMENT = "dates with times"
    CLOCK = "times of day"
    WHOLE = "whole numbers"
    REAL = "real numbers"
    TEXT = "text"
    FLAG = "yes/no values"
    OTHER = "values of another type"


_FAMILIES = (
    (r"DATE", Family.DATE),
    (r"TIMESTAMP.*", Family.MOMENT),
    (r"TIME(_NS| WITH TIME ZONE)?", Family.CLOCK),
    (r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)", Family.WHOLE),
    (r"DECIMAL\(\d+,\s*0\)", Family.WHOLE),
    (r"FLOAT|DOUBLE|DECIMAL\(.*\)", Family.REAL),
    (r"VARCHAR|UUID|ENUM\(.*\)|\"?NULL\"?", Family.TEXT),
    (r"BOOLEAN", Family.FLAG),
)


@dataclass(frozen=True)
class Unread:
    """Values of a column that are not what the others are."""

    count: int
    what: str
    """What they are not: a date, a number."""
    example: str
    row: int | None = None
    """The number of the first one's row, if rows have numbers."""
    line: int | None = None
    """The line of the file on which that row begins, if it is known."""

    def __str__(self) -> str:
        where = "such as" if self.line is None else f"the first on line {self.line:,}:"
        return f"{self.count:,} not {self.what}, {where} {self.example!r}"


@dataclass(frozen=True)
class Column:
    """A column of the table and its type in DuckDB, once it is read as what it holds.

    Attributes
    ----------
    name, type : str
    finite : bool
        Whether it is known that no date is infinite, which saves looking at each of them.
    reads : str or None
        SQL of the value, in which `X` is the value as it is stored; None if they are the same.
    how : str
        How values are written, in words or as a format of dates.
    notes : tuple of str
        What was decided about it.
    order : str
        The order of day, month and year of its dates, such as "day-first", where another one would
        be possible for some of them.
    step : str or None
        The period that its dates name, if they do not name days.
    unread : Unread or None
    doubt : str
        A sentence, if it cannot be told what its dates mean.
    na : tuple of str or None
        The words that mean a missing value, if the user says which.
    nearly : str
        What its texts nearly are: "marked" for numbers with flags or units behind them, which a
        value is read without; "codes" such as 12A, or numbers of too many digits; "flags" for words
        that mean yes and no; "numbers" if too many are something else.
    """

    name: str
    type: str
    finite: bool = False
    reads: str | None = None
    how: str = ""
    notes: tuple[str, ...] = ()
    step: str | None = None
    unread: Unread | None = None
    doubt: str = ""
    na: tuple[str, ...] | None = None
    nearly: str = ""
    order: str = ""

    @cached_property
    def family(self) -> Family:
        for pattern, family in _FAMILIES:
            if re.fullmatch(pattern, self.type, re.DOTALL):
                return family
        return Family.OTHER

    @property
    def sql(self) -> str:
        return identifier(self.name)

    @property
    def stored(self) -> str:
        """SQL of the value as it is stored; text of any type as plain text."""
        plain = self.reads is not None or self.family is not Family.TEXT or self.type == "VARCHAR"
        return self.sql if plain else f"CAST({self.sql} AS VARCHAR)"

    @property
    def projected(self) -> str:
        """SQL of the value as it is read, from the value as it is stored."""
        return self.sql if self.reads is None else self.reads.replace(X, self.stored)

    @property
    def in_utc(self) -> bool:
        """Whether it knows about time zones, so that its days begin and end in UTC."""
        return self.type == "TIMESTAMP WITH TIME ZONE"

    def missing(self, wanted: str | None = None) -> str:
        """Say what is wrong with values that cannot be used; text may not be what is wanted."""
        if self.unread is not None:
            return f"is missing, or cannot be read ({self.unread})"
        if wanted is not None and self.family is Family.TEXT:
            return f"is missing or not {wanted}"
        dates = "is missing or infinite" if self.reads is None else "is missing"
        return {
            Family.DATE: dates,
            Family.MOMENT: dates,
            Family.REAL: "is missing, not a number or infinite",
            Family.TEXT: "is missing or empty",
        }.get(self.family, "is missing")

    # Each of these expressions is NULL where the column has nothing usable.

    def label(self) -> str:
        """SQL that reads the column as a label: text, a whole number or a real one."""
        if self.family is Family.WHOLE:
            # Numbers of 128 bits do not fit in an array of whole numbers.
            wide = self.type.endswith("HUGEINT") or self.type.startswith("DECIMAL")
            return f"CAST({self.sql} AS VARCHAR)" if wide else self.sql
        if self.family is Family.REAL:
            # Adding zero makes one label of 0.0 and -0.0.
            return f"({self.real()} + 0.0)"
        return self.sql if self.type == "VARCHAR" else f"CAST({self.sql} AS VARCHAR)"

    def clean(self, label: str) -> str:
        """SQL that makes one label of those that mean the same, NULL of those that are none."""
        return clean_label(label, self.na) if self.family is Family.TEXT else label

    def real(self) -> str:
        """SQL that reads the column as a real number, from text too."""
        if self.type == "DOUBLE":
            value = self.sql
        else:
            cast = "TRY_CAST" if self.family is Family.TEXT else "CAST"
            value = f"{cast}({self.sql} AS DOUBLE)"
        return f"CASE WHEN isfinite({value}) THEN {value} END"

    def date(self) -> str:
        """SQL that reads the column as a date without a time."""
        if self.family is Family.DATE:
            if self.finite:
                return self.sql
            return f"CASE WHEN isfinite({self.sql}) THEN {self.sql} END"
        return f"CAST({self.moment()} AS DATE)"

    def moment(self) -> str:
        """SQL that reads the column as a point in time without a zone, from text too."""
        if self.in_utc:
            value = f"make_timestamp(epoch_us({self.sql}))"
        elif self.family is Family.TEXT:
            value = f"TRY_CAST({self.sql} AS TIMESTAMP)"
        else:
            value = self.sql if self.type == "TIMESTAMP" else f"CAST({self.sql} AS TIMESTAMP)"
        if self.finite:
            return value
        return f"CASE WHEN isfinite({self.sql if self.in_utc else value}) THEN {value} END"

    def clock(self) -> str:
        """SQL that reads a time of day as microseconds since midnight."""
        return f"epoch_us(CAST({self.sql} AS TIME))"
