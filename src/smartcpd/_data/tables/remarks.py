"""What users should look at in a table that was read: totals among rows, labels that differ in
upper and lower case only, numbers that stand for a missing value, few numbers below zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd._data.tables.measure import Measure
from smartcpd._data.tables.sources import TableRows
from smartcpd._data.tables.sql import number, one_row

TOTAL = re.compile(
    r"((grand|sub)[ -]?)?totals?|total[:,. ].*|all( [a-z ]+)?|sum(me)?|insgesamt|gesamt|zusammen|"
    r"ensemble|totale|suma|overall|both sexes|altogether|_t|tot",
    re.IGNORECASE,
)
"""Labels of rows that say again what other rows say."""
SAME = 0.01
"""How near a sum must be to that of all other rows, as a share."""
MOST_LABELS = 100_000
"""Modes with more labels are not searched for words."""
PLACEHOLDERS = frozenset(
    -float(digits) for digits in ("9", "99", "999", "9999", "99999", "999999", "99.9", "999.9")
) | {-88.0, -888.0, -8888.0, -99.99, -999.99, -9999.9}
"""Numbers below zero that stand for a missing value in many tables."""
FEW_NEGATIVE = 0.05
"""The share of numbers below zero up to which they are the exception."""
SIGNED = re.compile(
    r"temp(erature)?s?|degrees?|celsius|fahrenheit|profits?|balances?|change[sd]?|diff(erence)?s?|"
    r"delta|growth|anomal(y|ies)|deviations?|net|levels?|scores?|elevations?|altitudes?|lat|lon|"
    r"latitudes?|longitudes?|log|returns?|error",
    re.IGNORECASE,
)
"""Words in names of columns whose numbers are below zero by their nature."""


def about_labels(
    modes: Iterable[Mode], indices: Iterable[np.ndarray], values: np.ndarray
) -> Iterator[str]:
    """Point out labels that look like totals of others, or like each other."""
    for mode, places in zip(modes, indices, strict=True):
        if mode.kind is not Kind.CATEGORY or not 2 < len(mode) <= MOST_LABELS:
            continue
        labels = mode.text()
        yield from _totals(mode.name, labels, places, values)
        yield from _spellings(mode.name, labels)


def _totals(name: str, labels: list[str], places: np.ndarray, values: np.ndarray) -> Iterator[str]:
    found = [i for i, label in enumerate(labels) if TOTAL.fullmatch(label.strip())]
    if not found:
        return
    sums = np.bincount(places, weights=values.astype(np.float64), minlength=len(labels))
    others = sums.sum() - sums[found].sum()
    sure = any(abs(sums[i] - others) <= SAME * abs(others) for i in found)
    verb = "is the sum of" if sure else "may be the sum of"
    label = labels[found[0]]
    yield (
        f"{label!r} of {name!r} {verb} other labels, which then count twice; leave it out "
        f"with where=\"{quoted(name)} <> '{label.replace(chr(39), 2 * chr(39))}'\"."
    )


def quoted(name: str) -> str:
    """A column in an SQL condition, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'


def _spellings(name: str, labels: list[str]) -> Iterator[str]:
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(" ".join(label.casefold().split()), []).append(label)
    several = [group for group in alike.values() if len(group) > 1]
    if several:
        shown = " and ".join(map(repr, several[0][:3]))
        yield (
            f"Labels of {name!r} such as {shown} differ in upper and lower case or blanks only "
            f"and stay apart ({len(several):,} such)."
        )


def about_values(rows: TableRows, measure: Measure) -> Iterator[str]:
    """Point out a number that stands for a missing value, such as -999, and the few numbers below
    zero of a column that has none by its nature.
    """
    lowest, value = measure.lowest, measure.value()
    if lowest is None or lowest >= 0 or measure.column is None:
        return
    if float(lowest) not in PLACEHOLDERS:
        query = f"SELECT count(*) FILTER ({value} < 0), count({value}) FROM {rows.table}"
        yield about_negatives(measure.column.name, *one_row(rows.sql(query)))
        return
    least = number(float(lowest))
    count, others = one_row(
        rows.sql(
            f"SELECT count(*) FILTER ({value} = {least}), min({value}) FILTER ({value} > {least}) "
            f"FROM {rows.table}"
        )
    )
    if others is not None and others >= 0:
        name = measure.column.name
        yield (
            f"{float(lowest):g} stands in {count:,} rows of {name!r}, whose other values "
            f"are {float(others):g} or more; if it means missing, say na='{float(lowest):g}'."
        )


def about_negatives(name: str, negative: int, values: int) -> str:
    """Say how the few numbers below zero of a column can be left out; nothing if they are not few,
    or none, or belong there.
    """
    words = re.split(r"[_\W]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name))
    if not 0 < negative < FEW_NEGATIVE * values or any(map(SIGNED.fullmatch, words)):
        return ""
    verb = "is" if negative == 1 else "are"
    return (
        f"{negative:,} of {values:,} values of {name!r} {verb} negative (refunds, corrections?), "
        f'and one such cell rules out the losses of counts and amounts; where="{quoted(name)} >= 0"'
        f" leaves {'it' if negative == 1 else 'them'} out."
    )
