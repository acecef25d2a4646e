"""Bins of numbers, and which kind of bin a specification names."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from smartcpd._data.labels import Kind
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.keys import Key, Numbered, Wish, named
from smartcpd._data.tables.periods import Cycle, Period
from smartcpd._data.tables.sql import number
from smartcpd.errors import InvalidDataError, InvalidParameterError

NUMBERS = (Family.WHOLE, Family.REAL, Family.TEXT)
MOST_BINS = 10_000


@dataclass(frozen=True)
class EqualWidth:
    """Bins of equally wide ranges of numbers; the last one includes its end."""

    count: int

    def wish(self, name: str, column: Column) -> Wish:
        _check_numbers(name, column, str(self.count))
        x = column.real()

        def resolve(facts: tuple[Any, ...]) -> Key:
            low, high = facts
            _check_range(name, column, low, high)
            width = high / self.count - low / self.count
            edges = [low + width * i for i in range(self.count)] + [high]
            # Halves are used because the range of doubles itself can be too long for a double.
            scaled = f"(({x}) / 2 - {number(low / 2)}) / {number(width / 2)}"
            # `least` is not used, as it skips NULL, which here means unknown.
            index = f"CAST(floor({scaled}) AS INTEGER)"
            last = self.count - 1
            index = f"CASE WHEN {index} >= {last} THEN {last} ELSE {index} END"
            return _binned(name, column, index, _ranges(edges))

        return Wish(name, column, (f"min({x})", f"max({x})"), resolve)


@dataclass(frozen=True)
class Quantiles:
    """Bins of ranges of numbers that hold about equally many events; each includes its end."""

    count: int

    def wish(self, name: str, column: Column) -> Wish:
        _check_numbers(name, column, f"{self.count}q")
        x = column.real()
        shares = ", ".join(repr(i / self.count) for i in range(1, self.count))

        def resolve(facts: tuple[Any, ...]) -> Key:
            low, inner, high = facts
            _check_range(name, column, low, high)
            cuts = sorted({cut for cut in inner if cut < high})
            whole = column.family is Family.WHOLE
            labels = (_whole_ranges if whole else _ranges_to)(low, [*cuts, high])
            key = _binned(name, column, _search(f"({x})", cuts), labels)
            if len(labels) < self.count:
                key.notes.append(
                    f"{name!r} has {len(labels)} bins instead of {self.count}: some values are "
                    "too frequent to be divided."
                )
            return key

        facts = (f"min({x})", f"quantile_disc({x}, [{shares}])", f"max({x})")
        return Wish(name, column, facts, resolve)


@dataclass(frozen=True)
class Step:
    """Bins of one width that begin at its multiples, such as 0.01 degrees; those that occur."""

    width: str

    def wish(self, name: str, column: Column) -> Wish:
        _check_numbers(name, column, self.width)
        width = float(self.width)
        digits = len(self.width.partition(".")[2].rstrip("0"))
        # A number that is a multiple of the width, but for rounding, begins its bin.
        index = f"CAST(floor({column.real()} / {number(width)} + 1e-9) AS BIGINT)"

        def labels(first: int, last: int) -> list[str]:
            edges = [f"{round(n * width, digits) + 0.0:.{digits}f}" for n in range(first, last + 2)]
            return [f"{a} to {b}" for a, b in pairwise(edges)]

        fault = column.missing("a number")
        key = Numbered(name, column, index, fault, labels, Kind.NUMBER, gaps=False)
        return Wish(name, column, (), lambda _: key)


Bin = Period | Cycle | EqualWidth | Quantiles | Step


def parse_bin(name: str, spec: Any) -> Bin:
    """The bin that a specification such as '1w', 'hour', '20q' or 10 names."""
    text = str(spec).strip()
    count = re.fullmatch(r"(\d+)(q?)", text)
    if count:
        if not 2 <= int(count[1]) <= MOST_BINS:
            raise InvalidParameterError(
                f"Bin {text!r} of mode {name!r} asks for {count[1]} bins; ask for 2 to "
                f"{MOST_BINS:,}."
            )
        return (Quantiles if count[2] else EqualWidth)(int(count[1]))
    if re.fullmatch(r"\d*\.\d+", text) and float(text) > 0:
        return Step(text)
    found = Period.parse(text) or Cycle.parse(text)
    if found is None:
        raise InvalidParameterError(
            f"Bin {spec!r} of mode {name!r} is not understood; use a period such as '1w', '1d', "
            "'1h', '15min', '1mo' or '1y', a cycle 'hour', 'weekday' or 'month', a number of "
            "equal ranges such as '10', quantiles such as '20q', or a width such as '0.01'."
        )
    return found


def _binned(name: str, column: Column, index: str, labels: list[str]) -> Numbered:
    fault = column.missing("a number")
    return Numbered(name, column, index, fault, named(labels), Kind.NUMBER, len(labels))


def _search(x: str, cuts: list[float]) -> str:
    """SQL that counts how many of the cuts are below x, by halving: NULL stays NULL."""

    def between(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last) // 2
        left, right = between(first, middle), between(middle + 1, last)
        return f"CASE WHEN {x} <= {number(float(cuts[middle]))} THEN {left} ELSE {right} END"

    return f"CASE WHEN {x} IS NOT NULL THEN {between(0, len(cuts))} END"


def _ranges(edges: list[float]) -> list[str]:
    """Write ranges with as many digits as it takes to tell the edges apart."""
    for digits in range(6, 18):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return [f"{a} to {b}" for a, b in pairwise(texts)]


def _ranges_to(low: float, ends: list[float]) -> list[str]:
    """Ranges that include their ends; the smallest value alone may fill the first."""
    if ends[0] > low:
        return _ranges([low, *ends])
    return [f"{low:.6g}", *_ranges(ends)]


def _whole_ranges(low: float, ends: list[float]) -> list[str]:
    """Write ranges of whole numbers, so that no number is in two of them."""
    starts = [int(low), *(int(end) + 1 for end in ends[:-1])]
    pairs = zip(starts, map(int, ends), strict=True)
    return [str(a) if a == b else f"{a} to {b}" for a, b in pairs]


def _check_numbers(name: str, column: Column, spec: str) -> None:
    if column.family not in NUMBERS:
        raise InvalidParameterError(
            f"Bin {spec!r} of mode {name!r} needs numbers, and column {column.name!r} holds "
            f"{column.family}."
        )


def _check_range(name: str, column: Column, low: Any, high: Any) -> None:
    if low is None:
        raise InvalidDataError(
            f"Column {column.name!r} has no number in the rows used, so mode {name!r} cannot be "
            "cut into bins."
        )
    if not math.isfinite(low) or low == high:
        raise InvalidDataError(
            f"Column {column.name!r} has one value only, {low:.6g}, so mode {name!r} cannot be cut "
            "into bins; leave it out."
        )
