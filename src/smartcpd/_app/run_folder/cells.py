"""Cells named by their labels in a table, found again in the modes of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.keys import Numbered
from smartcpd._data.tables.kinds import NUMBER
from smartcpd._data.tables.opening import opened
from smartcpd._data.tables.periods import Cycle
from smartcpd._data.tables.reading import as_reading
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import SOURCE, explained, identifier, literal
from smartcpd._data.tables.wishes import AT, column_names, find_column
from smartcpd.errors import InvalidDataError

EXAMPLES = 3
OTHER = "(other)"
"""The row of labels that were too rare for one of their own, as `from_table` calls it."""


@dataclass(frozen=True)
class NamedCells:
    """Rows of a table as cells of a tensor, which they name by labels.

    Attributes
    ----------
    rows : (K x N) array of int
        -1 where the label is unknown.
    texts : list of list of str
        What the table says, one list a mode.
    values : array or None
        What was observed; NaN where nothing was.
    value_name : str
    examples : list of str
        Some of the unknown labels.
    """

    rows: np.ndarray
    texts: list[list[str]]
    values: np.ndarray | None
    value_name: str
    examples: list[str]

    @property
    def unknown(self) -> int:
        """Rows of the table with a label that is in no mode."""
        return int((self.rows < 0).any(axis=1).sum())

    @property
    def different(self) -> int:
        """Cells that the rows without such a label fall into."""
        return len(np.unique(self.rows[(self.rows >= 0).all(axis=1)], axis=0))


def read_cells(
    path: str,
    modes: Sequence[Mode],
    value: str | None = None,
    fitted: str | None = None,
    bins: Mapping[str, str] | None = None,
    reading: Mapping[str, Any] | None = None,
    names_in_data: Mapping[str, str] | None = None,
) -> NamedCells:
    """Read a table that names cells.

    Parameters
    ----------
    path : str
        Any table that `from_table` reads, with a column for each mode: of the mode's name, or for
        modes such as ``time@hour`` of the name before the sign.
    modes : sequence of Mode
    value : str, optional
        The column of observed values.
    fitted : str, optional
        The column that the model was fitted to, which is taken if it is there.
    bins : mapping, optional
        From modes or columns to the bins that the fit had.
    reading : mapping, optional
        How the table is written, as `from_table` takes it.
    names_in_data : mapping, optional
        What renamed modes were called in the table that was fitted; columns may have those names.
    """
    with opened(path, reading=as_reading(**(reading or {})), in_order=True) as source:
        source.look_for(column_names([mode.name for mode in modes], value))
        source.offer()
        modes = [_as_called(source, mode, names_in_data or {}) for mode in modes]
        if value is None and fitted in source.columns:
            value = fitted
        asked: dict[str, str | None] = {_named(source, mode).name: None for mode in modes}
        if value is not None:
            asked[find_column(source, value).name] = NUMBER
        source.understand(asked)
        wanted = [_column(source, mode, bins or {}) for mode in modes]
        texts, numbers = _read(source, wanted, value)
    if not texts[0]:
        raise InvalidDataError(f"There is no row in {path}.")
    found = [_positions(mode, column) for mode, column in zip(modes, texts, strict=True)]
    rows = np.stack(found, axis=1)
    examples = [
        f"{mode.name} {text!r}"
        for mode, column, index in zip(modes, texts, found, strict=True)
        for text in list(dict.fromkeys(t for t, i in zip(column, index, strict=True) if i < 0))
    ]
    return NamedCells(rows, texts, numbers, value or "", examples[:EXAMPLES])


def _as_called(source: Source, mode: Mode, names_in_data: Mapping[str, str]) -> Mode:
    """Return the mode by the name that the table has for it: its own, or the one it had before."""
    before = names_in_data.get(mode.name, mode.name)
    if mode.name in source.columns or not {before, before.rpartition(AT)[0]} & {*source.columns}:
        return mode
    return Mode(before, mode.labels, mode.kind)


def _named(source: Source, mode: Mode) -> Column:
    """Return the column of a mode: of its name, or of the name before the sign."""
    base, at, _ = mode.name.rpartition(AT)
    own = mode.name in source.columns or not at
    return find_column(source, mode.name if own else base)


def _column(source: Source, mode: Mode, bins: Mapping[str, str]) -> str:
    """The SQL of the text that names rows of a mode; what it is in a cycle is found from dates."""
    column = _named(source, mode)
    if column.doubt:
        raise InvalidDataError(column.doubt)
    own = column.name == mode.name
    cycle = Cycle.parse(bins.get(mode.name, "") if own else mode.name.rpartition(AT)[2])
    if column.family is Family.DATE:
        text = f"CAST({column.date()} AS VARCHAR)"
    elif column.family is Family.MOMENT:
        text = f"CAST({column.moment()} AS VARCHAR)"
    else:
        text = f"CAST({column.label()} AS VARCHAR)"
    if cycle is None or column.family not in (Family.DATE, Family.MOMENT, Family.CLOCK):
        return f"coalesce({column.clean(text)}, '')"
    key = cycle.wish(mode.name, column).resolve(())
    assert isinstance(key, Numbered)
    assert key.size is not None
    labels = ", ".join(literal(str(label)) for label in key.labels(0, key.size - 1))
    return f"coalesce([{labels}][1 + ({key.expression})], '')"


def _read(
    source: Source, wanted: list[str], value: str | None
) -> tuple[list[list[str]], np.ndarray | None]:
    if value is not None:
        wanted = [*wanted, f"CAST({identifier(value)} AS DOUBLE)"]
    with explained(f"Reading {source.name}"):
        table = source.sql(f"SELECT {', '.join(wanted)} FROM {SOURCE}").fetchall()
    lists = [list(column) for column in zip(*table, strict=True)] or [[] for _ in wanted]
    numbers = None
    if value is not None:
        numbers = np.array([np.nan if x is None else x for x in lists.pop()], float)
    return lists, numbers


def _positions(mode: Mode, texts: list[str]) -> np.ndarray:
    """Return the row of each text, or -1."""
    if mode.labels.dtype.kind == "M":
        return _periods(mode, texts)
    rows = {label: row for row, label in enumerate(mode.text())}
    other = rows.get(OTHER, -1) if mode.kind is Kind.CATEGORY else -1
    if mode.labels.dtype.kind in "iuf":
        numbers = {float(label): row for row, label in enumerate(mode.labels.tolist())}
        return np.array([rows.get(t, numbers.get(_number(t), other)) for t in texts], np.intp)
    ends = _ends_of_ranges(mode)
    if ends is not None:
        return np.array([rows.get(t, _range_of(_number(t), *ends)) for t in texts], np.intp)
    return np.array([rows.get(text, other) for text in texts], np.intp)


def _ends_of_ranges(mode: Mode) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the ends of ranges such as '10 to 20', if that is what the rows are."""
    if mode.kind is not Kind.NUMBER:
        return None
    parts = [text.split(" to ") for text in mode.text()]
    starts = np.array([_number(part[0]) for part in parts])
    ends = np.array([_number(part[-1]) for part in parts])
    return None if np.isnan([starts, ends]).any() else (starts, ends)


def _range_of(x: float, starts: np.ndarray, ends: np.ndarray) -> int:
    row = int(np.searchsorted(ends, x))
    return row if row < len(ends) and x >= starts[0] else -1


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _periods(mode: Mode, texts: list[str]) -> np.ndarray:
    """The period that each moment is in; the last one is as long as the one before."""
    order = np.argsort(mode.labels, kind="stable")
    starts = mode.labels[order]
    length = starts[-1] - starts[-2] if len(starts) > 1 else np.timedelta64(1, "D")
    rows = np.full(len(texts), -1, np.intp)
    for i, text in enumerate(texts):
        try:
            moment = np.datetime64(text.strip().replace(" ", "T"), "us")
        except ValueError:
            continue
        place = int(np.searchsorted(starts, moment, side="right")) - 1
        if place >= 0 and moment < starts[-1] + length:
            rows[i] = order[place]
    return rows
