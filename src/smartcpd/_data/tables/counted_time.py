"""Times that numbers count, or write without signs between their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.dating import Dating
from smartcpd._data.tables.reading import EPOCHS, EXCEL, ORDERS
from smartcpd._data.tables.sql import X
from smartcpd.errors import InvalidDataError

SCALES = {"epoch": 1.0, "epoch-ms": 1e3, "epoch-us": 1e6, "epoch-ns": 1e9}
UNITS = ("seconds", "milliseconds", "microseconds", "nanoseconds")
EARLIEST, LATEST = 3e8, 4.2e9
"""Seconds since 1970 that are taken for times: from 1979 to 2103."""
COMPACT = (("%Y%m%d", 19000101, 21001231), ("%Y%m", 190001, 210012))
"""Formats of dates that are whole numbers, and the range of those."""
DAYS_TO_1970 = 25_569
"""From the day that spreadsheets count from."""


def counted(
    column: Column,
    ends: tuple[Any, Any],
    wanted: str | None,
    must: bool,
    dating: Callable[[str], Dating],
) -> Column:
    """Return a column of numbers as times, or as it is if they are none.

    Parameters
    ----------
    column : Column
    ends : pair of numbers
        The smallest and the largest.
    wanted : str or None
        The format that the user says.
    must : bool
        Whether it is an error if they are none.
    dating : callable
        Finds dates in texts, given their SQL.
    """
    low, high = ends
    value = column.reads or X
    if low is None or wanted in ORDERS:
        return column
    for word, scale in SCALES.items():
        usual = low / scale >= EARLIEST and high / scale <= LATEST
        if wanted == word or (wanted is None and usual):
            return _epoch(column, value, word)
    if wanted == EXCEL:
        return _spreadsheet(column, value)
    for form, least, most in COMPACT:
        if wanted in (None, form) and least <= low and high <= most:
            found = dating(f"CAST({value} AS VARCHAR)").of_format(form)
            return found if must or found.unread is None else column
    if must and wanted in (None, "%Y") and low >= 1000 and high <= 2200:
        reads = f"make_date(CAST({value} AS INTEGER), 1, 1)"
        return replace(column, type="DATE", reads=reads, how="years", step="1y")
    if not must:
        return column
    raise InvalidDataError(
        f"Column {column.name!r} holds numbers from {low:g} to {high:g}, which are no dates that "
        f"are known; say what they count, as in date_format={{{column.name!r}: 'epoch'}}, with one "
        f"of {', '.join(map(repr, (*EPOCHS, EXCEL)))}, or a format such as '%Y%m%d'."
    )


def _epoch(column: Column, value: str, word: str) -> Column:
    factor = EPOCHS[word]
    scaled = f"{value} * {factor}" if factor > 0 else f"{value} / {-factor}"
    how = f"{dict(zip(SCALES, UNITS, strict=True))[word]} since 1970"
    return replace(
        column,
        type="TIMESTAMP",
        reads=f"make_timestamp(CAST({scaled} AS BIGINT))",
        how=how,
        notes=(*column.notes, f"Numbers of {column.name!r} are taken for {how}, in UTC."),
    )


def _spreadsheet(column: Column, value: str) -> Column:
    how = "days counted by a spreadsheet"
    if column.family is Family.WHOLE:
        reads = f"DATE '1970-01-01' + CAST({value} - {DAYS_TO_1970} AS INTEGER)"
        return replace(column, type="DATE", reads=reads, how=how)
    # Seconds are rounded, as a part of a day is not exact.
    seconds = f"round(({value} - {DAYS_TO_1970}) * 86400)"
    reads = f"make_timestamp(CAST({seconds} AS BIGINT) * 1000000)"
    return replace(column, type="TIMESTAMP", reads=reads, how=how)
