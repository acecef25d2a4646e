"""Cells named by their labels in a table, found again in the modes of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd.errors import InvalidDataError
from smartcpd.labels import Kind, Mode
from smartcpd.tables.sources import Source, opened
from smartcpd.tables.sql import SOURCE, explained, identifier
from smartcpd.tables.wishes import find_column

EXAMPLES = 3
OTHER = "(other)"
"""The row of labels that were too rare for one of their own, as `from_table` calls it."""


@dataclass(frozen=True)
class Cells:
    """Rows of a table as cells of a tensor.

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


def read_cells(
    path: str, modes: Sequence[Mode], value: str | None = None, fitted: str | None = None
) -> Cells:
    """Read a table whose columns have the names of the modes.

    Parameters
    ----------
    path : str
        Any table that `from_table` reads.
    modes : sequence of Mode
    value : str, optional
        The column of observed values.
    fitted : str, optional
        The column that the model was fitted to, which is taken if it is there.
    """
    names = [mode.name for mode in modes]
    with opened(path, None) as source:
        source.look_for(names if value is None else [*names, value])
        columns = [identifier(find_column(source, name).name) for name in names]
        if value is None and fitted in source.columns:
            value = fitted
        if value is not None:
            find_column(source, value)
        texts, numbers = _read(source, columns, value)
    if not texts[0]:
        raise InvalidDataError(f"There is no row in {path}.")
    found = [_positions(mode, column) for mode, column in zip(modes, texts, strict=True)]
    rows = np.stack(found, axis=1)
    examples = [
        f"{mode.name} {text!r}"
        for mode, column, index in zip(modes, texts, found, strict=True)
        for text in list(dict.fromkeys(t for t, i in zip(column, index, strict=True) if i < 0))
    ]
    return Cells(rows, texts, numbers, value or "", examples[:EXAMPLES])


def _read(
    source: Source, columns: list[str], value: str | None
) -> tuple[list[list[str]], np.ndarray | None]:
    wanted = [f"coalesce(CAST({column} AS VARCHAR), '')" for column in columns]
    if value is not None:
        wanted.append(f"TRY_CAST({identifier(value)} AS DOUBLE)")
    with explained(f"Reading {source.name}"):
        source.connection.execute("SET preserve_insertion_order = true")
        table = source.sql(f"SELECT {', '.join(wanted)} FROM {SOURCE}").fetchall()
    lists = [list(column) for column in zip(*table, strict=True)] or [[] for _ in wanted]
    numbers = None
    if value is not None:
        numbers = np.array([np.nan if x is None else x for x in lists.pop()], float)
    return lists, numbers


def _positions(mode: Mode, texts: list[str]) -> np.ndarray:
    """The row of each text, or -1."""
    if mode.labels.dtype.kind == "M":
        return _periods(mode, texts)
    rows = {label: row for row, label in enumerate(mode.text())}
    other = rows.get(OTHER, -1) if mode.kind is Kind.CATEGORY else -1
    if mode.labels.dtype.kind in "iuf":
        numbers = {float(label): row for row, label in enumerate(mode.labels.tolist())}
        return np.array([rows.get(t, numbers.get(_number(t), other)) for t in texts], np.intp)
    return np.array([rows.get(text, other) for text in texts], np.intp)


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
