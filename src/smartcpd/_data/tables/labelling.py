"""Modes made of the labels that occur in a column, in a sensible order."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.keys import TABLE, Key, Leading, Named, Wish, positions
from smartcpd._data.tables.periods import DAYS_OF_WEEK, MONTHS_OF_YEAR
from smartcpd.errors import InvalidDataError

MOST_REALS = 100
"""Up to so many different real numbers may be labels."""
GLANCE = 100_000
"""Number of rows that are looked at to see early that there are too many labels."""
CYCLES = (
    (re.compile(r"(^|[^a-z])(hour|hr)s?([^a-z]|$)", re.IGNORECASE), (range(24),)),
    (
        re.compile(r"week_?day|day_?of_?(the_?)?week|(^|[^a-z])dow([^a-z]|$)", re.IGNORECASE),
        (range(7), range(1, 8)),
    ),
    (re.compile(r"(^|[^a-z])month([^a-z]|$)", re.IGNORECASE), (range(1, 13),)),
)
"""Patterns of names of columns whose whole numbers are parts of a cycle, and those numbers."""
NAMED_CYCLES = (
    tuple(day.lower() for day in DAYS_OF_WEEK),
    tuple(month.lower() for month in MONTHS_OF_YEAR),
)
FULL_NAME = re.compile(
    "monday|tues(day)?|wednesday|thurs?(day)?|friday|saturday|sunday|january|february|march|april|"
    "june|july|august|sept(ember)?|october|november|december"
)


def labels_wish(name: str, column: Column) -> Wish:
    """A mode whose rows are the values of a column."""
    key = Named(name, column, column.label(), column.missing())
    if column.family is not Family.REAL:
        return Wish(name, column, (), lambda _: key)
    # A glance at the first rows refuses a column of measurements before a long table is grouped by
    # it.
    early = (
        f"(SELECT count(DISTINCT x) FROM (SELECT {column.label()} AS x FROM {TABLE} "
        f"LIMIT {GLANCE}) WHERE x <> round(x))"
    )

    def resolve(facts: tuple[Any, ...]) -> Key:
        check_reals(name, facts[0])
        return key

    return Wish(name, column, (early,), resolve)


def leading_wish(name: str, column: Column, count: int, gather: bool) -> Wish:
    """A mode whose rows are the most frequent values of a column."""
    key = Leading(name, column, column.label(), column.missing(), count, gather)
    return Wish(name, column, (), lambda _: key)


def check_reals(name: str, count: int) -> None:
    if count > MOST_REALS:
        raise InvalidDataError(
            f"Mode {name!r} holds real numbers, more than {MOST_REALS:,} different ones; cut them "
            f"into bins, such as bins={{{name!r}: '20q'}} for quantiles or '20' for equal ranges."
        )


def arranged(name: str, labels: np.ndarray) -> tuple[Mode, np.ndarray]:
    """Return the mode that labels make, and the row of each of them."""
    if labels.dtype.kind == "f":
        whole = bool((labels == np.round(labels)).all() and (abs(labels) < 2**53).all())
        if not whole:
            check_reals(name, labels.size)
        labels = labels.astype(np.int64) if whole else labels
    if labels.dtype.kind == "f":
        return _in_order(name, labels, np.sort(labels), Kind.NUMBER)
    if labels.dtype.kind in "iu":
        cycle = _cycle_of_numbers(name, labels)
        if cycle is not None:
            return _in_order(name, labels, cycle, Kind.CYCLE)
        return _in_order(name, labels, np.sort(labels), Kind.NUMBER)
    texts = [str(label) for label in labels.tolist()]
    cycle_order = _cycle_of_names(texts)
    if cycle_order is not None:
        return _reordered(name, texts, cycle_order, Kind.CYCLE)
    return _reordered(name, texts, natural_order(texts), Kind.CATEGORY)


def natural_order(texts: list[str]) -> list[int]:
    """Return the order of texts with numbers by size: 'zone 9' comes before 'zone 10'."""
    try:
        values = [float(text) for text in texts]
        if np.isfinite(values).all():
            return sorted(range(len(texts)), key=lambda i: (values[i], texts[i]))
    except ValueError:
        pass

    def pieces(i: int) -> tuple[list[tuple[int, int, str]], str]:
        parts = re.split(r"([0-9]{1,18})", texts[i])
        by_kind = [(0, int(p), "") if n % 2 else (1, 0, p) for n, p in enumerate(parts)]
        return by_kind, texts[i]

    return sorted(range(len(texts)), key=pieces)


def _in_order(
    name: str, labels: np.ndarray, wanted: np.ndarray, kind: Kind
) -> tuple[Mode, np.ndarray]:
    return Mode(name, wanted, kind), positions(labels, wanted)


def _reordered(name: str, texts: list[str], order: list[int], kind: Kind) -> tuple[Mode, Any]:
    rows = np.empty(len(order), np.int64)
    rows[order] = np.arange(len(order))
    return Mode(name, [texts[i] for i in order], kind), rows


def _cycle_of_numbers(name: str, labels: np.ndarray) -> np.ndarray | None:
    """Return all numbers of the cycle, if the name tells of one and only its numbers occur."""
    for pattern, cycles in CYCLES:
        if not pattern.search(name):
            continue
        fitting = [c for c in cycles if labels.min() >= c.start and labels.max() < c.stop]
        found = np.sort(labels)
        steps = np.diff(found)
        # Days from 1 to 6 may be counted from 0 or from 1, and somebody who looks every third hour
        # knows nothing of the others: then only those that occur are rows.
        regular = steps.size > 1 and steps[0] > 1 and (steps == steps[0]).all()
        if len(fitting) == 1 and not regular:
            return np.array(fitting[0])
        return found if fitting else None
    return None


def _cycle_of_names(texts: list[str]) -> list[int] | None:
    """Return the order of labels that are days of the week or months."""
    lowered = [text.strip().lower().rstrip(".") for text in texts]
    if not all(len(text) == 3 or FULL_NAME.fullmatch(text) for text in lowered):
        return None
    for cycle in NAMED_CYCLES:
        if all(text[:3] in cycle for text in lowered):
            return sorted(range(len(texts)), key=lambda i: (cycle.index(lowered[i][:3]), texts[i]))
    return None
