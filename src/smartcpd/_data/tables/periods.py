"""Bins of time: periods that follow each other, and parts of a cycle."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from smartcpd._data.labels import Kind
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.keys import Key, Numbered, Wish, named
from smartcpd._data.tables.sql import floor_divide
from smartcpd.errors import InvalidDataError, InvalidParameterError

DAY = 86_400_000_000
UNITS = {"s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": DAY, "w": 7 * DAY}
"""Units of a fixed length, in microseconds."""
MONTHS = {"mo": 1, "y": 12}
MONDAY = 3
"""Days from a Monday to the first of January 1970."""
DAYS_OF_WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS_OF_YEAR = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
CYCLES: dict[str, Sequence[Any]] = {
    "hour": range(24),
    "weekday": DAYS_OF_WEEK,
    "month": MONTHS_OF_YEAR,
}
"""Cycles, and the names of their parts."""
USUAL = ("1s", "5s", "15s", "1min", "5min", "15min", "1h", "3h", "6h", "1d", "1w", "1mo", "1y")
"""Periods that are tried where the user does not choose one."""
MOST_USUAL_BINS = 400
TIMES = (Family.DATE, Family.MOMENT, Family.TEXT)


@dataclass(frozen=True)
class Period:
    """A stretch of time, such as ``15min``, ``1w`` or ``3mo``; weeks begin on Monday."""

    count: int
    unit: str

    @classmethod
    def parse(cls, spec: str) -> Period | None:
        found = re.fullmatch(r"\s*(\d+)\s*(s|min|h|d|w|mo|y)\s*", spec)
        if not found or int(found[1]) == 0:
            return None
        return cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    @property
    def width(self) -> int:
        """The length in microseconds, or in months where months differ in length."""
        return self.count * {**UNITS, **MONTHS}[self.unit]

    @property
    def by_month(self) -> bool:
        return self.unit in MONTHS

    def wish(self, name: str, column: Column) -> Wish:
        if column.family is Family.CLOCK:
            return _clock(self, name, column)
        if column.family not in TIMES:
            raise _needs_times(name, column, str(self))
        if column.family is Family.DATE and self.unit in ("h", "min", "s"):
            raise InvalidParameterError(
                f"Column {column.name!r} holds dates without times, which a bin of {str(self)!r} "
                "cannot divide; use '1d' or longer."
            )
        return Wish(name, column, (), lambda _: self.key(name, column))

    def key(self, name: str, column: Column) -> Numbered:
        fault = column.missing("a date")
        notes = _zone(column)
        expression = f"CAST({self._index(column)} AS BIGINT)"
        return Numbered(name, column, expression, fault, self._starts, Kind.TIME, notes=notes)

    def _index(self, column: Column) -> str:
        """Return the SQL of the number of the period since 1970."""
        if self.by_month:
            moment = column.date()
            return floor_divide(f"(year({moment}) - 1970) * 12 + month({moment}) - 1", self.width)
        if self.width % DAY == 0:
            days = f"({column.date()}) - DATE '1970-01-01'"
            weekly = self.unit == "w"
            days = f"({days} + {MONDAY})" if weekly else f"({days})"
            return floor_divide(days, self.width // DAY)
        return floor_divide(f"epoch_us({column.moment()})", self.width)

    def _starts(self, first: int, last: int) -> np.ndarray:
        index = np.arange(first, last + 1, dtype=np.int64)
        if self.by_month:
            return (index * self.width).astype("datetime64[M]").astype("datetime64[us]")
        shift = MONDAY * DAY if self.unit == "w" else 0
        return (index * self.width - shift).astype("datetime64[us]")

    def bins_between(self, first: datetime, last: datetime) -> float:
        if self.by_month:
            return (last.year - first.year) * 12 / self.width + 1
        return (last - first) / timedelta(microseconds=self.width) + 1


def usual_period(name: str, column: Column) -> Wish:
    """Choose for times without a bin the shortest period that does not give too many rows."""
    moment = column.moment()

    def resolve(facts: tuple[Any, ...]) -> Key:
        first, last = facts
        chosen = Period(1, "d")
        if isinstance(first, str) or isinstance(last, str):  # as DuckDB gives what Python has not
            raise InvalidDataError(
                f"Column {column.name!r} has times from {first} to {last}, beyond the years 1 to "
                f"9999 of which periods are chosen; leave such rows out with where=, or choose "
                f"periods with bins={{{name!r}: ...}}."
            )
        if first is not None:
            candidates = [p for p in map(Period.parse, USUAL) if p]
            short = (p for p in candidates if p.bins_between(first, last) <= MOST_USUAL_BINS)
            chosen = next(short, candidates[-1])
        key = chosen.key(name, column)
        key.notes.append(
            f"{name!r} is cut into periods of {str(chosen)!r}, chosen from its range; choose "
            f"another with bins={{{name!r}: ...}}."
        )
        return key

    return Wish(name, column, (f"min({moment})", f"max({moment})"), resolve)


def usual_clock(name: str, column: Column) -> Wish:
    """Choose hours for times of day without a bin."""
    return Cycle("hour").wish(name, column)


def _clock(period: Period, name: str, column: Column) -> Wish:
    if period.by_month or period.width > DAY or DAY % period.width:
        raise InvalidParameterError(
            f"Column {column.name!r} holds times of day, which {str(period)!r} does not divide "
            "evenly; use a bin such as '1h' or '15min'."
        )

    def labels(first: int, last: int) -> list[str]:
        starts = (np.arange(first, last + 1) * period.width).astype("datetime64[us]")
        unit = "s" if period.unit == "s" else "m"
        return [str(start)[11:] for start in starts.astype(f"datetime64[{unit}]")]

    index = f"({column.clock()}) // {period.width}"
    size = DAY // period.width
    key = Numbered(name, column, index, column.missing(), labels, Kind.CYCLE, size)
    return Wish(name, column, (), lambda _: key)


@dataclass(frozen=True)
class Cycle:
    """A part of something that repeats: ``hour`` of the day, ``weekday``, ``month`` of the year."""

    part: str

    @classmethod
    def parse(cls, spec: str) -> Cycle | None:
        return cls(spec.strip()) if spec.strip() in CYCLES else None

    def __str__(self) -> str:
        return self.part

    def wish(self, name: str, column: Column) -> Wish:
        fault = column.missing("a date")
        if column.family is Family.CLOCK and self.part == "hour":
            index = f"({column.clock()}) // {UNITS['h']}"
        elif column.family not in TIMES:
            raise _needs_times(name, column, self.part)
        elif column.family is Family.DATE and self.part == "hour":
            raise InvalidParameterError(
                f"Column {column.name!r} holds dates without times, so there is no hour of the "
                "day; use 'weekday' or 'month'."
            )
        else:
            when = column.moment() if self.part == "hour" else column.date()
            function = {"hour": "hour", "weekday": "isodow", "month": "month"}[self.part]
            index = f"{function}({when})" + ("" if self.part == "hour" else " - 1")
        names = CYCLES[self.part]
        size, notes = len(names), _zone(column)
        key = Numbered(name, column, index, fault, named(names), Kind.CYCLE, size, notes=notes)
        return Wish(name, column, (), lambda _: key)


def _zone(column: Column) -> list[str]:
    if not column.in_utc:
        return []
    return [
        f"Times in {column.name!r} are taken in UTC; convert them to local time without a zone "
        "first if hours and days should be local."
    ]


def _needs_times(name: str, column: Column, spec: str) -> InvalidParameterError:
    more = ""
    if column.family in (Family.WHOLE, Family.REAL):
        more = "; if they count seconds since 1970, turn them into times first"
    return InvalidParameterError(
        f"Bin {spec!r} of mode {name!r} needs dates or times, and column {column.name!r} holds "
        f"{column.family}{more}."
    )
