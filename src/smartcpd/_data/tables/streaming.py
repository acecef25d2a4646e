"""Cells that are too many for memory, grouped on disk and handed over piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.tables.account import Account
from smartcpd._data.tables.counting import (
    CountingPlan,
    Tally,
    finished_mode,
    gathered,
    grouping,
    nothing_used,
    planned,
    tallied,
    unpacked,
)
from smartcpd._data.tables.keys import Key
from smartcpd._data.tables.measure import Measure
from smartcpd._data.tables.sources import TableRows
from smartcpd._data.tables.sql import OURS, one_row

PIECE = 1 << 21
"""Number of cells of a piece."""
TABLE = f"{OURS}_cells"


@dataclass(frozen=True)
class Pieces:
    """A tensor that is handed over piece by piece, and is never in memory as a whole."""

    modes: tuple[Mode, ...]
    used: tuple[int, ...]
    """How many rows of each mode have a cell."""
    absent: str
    rows: TableRows
    plan: CountingPlan
    orders: tuple[np.ndarray | None, ...]

    def __iter__(self) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
        """Yield indices and values of some cells at a time."""
        for columns, kept in _columns(self.rows, self.plan):
            columns = {name: column[kept] for name, column in columns.items()}
            indices = []
            for i, order in enumerate(self.orders):
                index = columns.pop(f"i{i}")
                indices.append(index if order is None else order[index])
            if columns["rows"].size:
                yield tuple(indices), self.plan.measure.finished(columns)


def pieces(
    rows: TableRows, keys: Sequence[Key], measure: Measure, max_labels: int, account: Account
) -> Pieces:
    """Aggregate the rows like `counting.cells`, but leave the cells with DuckDB."""
    plan = planned(rows, keys, measure, max_labels)
    rows.sql(f"DROP TABLE IF EXISTS {TABLE}")
    rows.sql(f"CREATE TEMP TABLE {TABLE} AS {grouping(rows, plan)}")
    occurs = [np.zeros(slot.size, bool) for slot in plan.numbered]
    in_others = [0] * len(occurs)
    tally = Tally({}, 0)
    for columns, kept in _columns(rows, plan):
        tally += tallied(columns, plan)[1]
        counts = columns["rows"][kept]
        for i, slot in enumerate(plan.numbered):
            index = columns[f"i{i}"][kept]
            occurs[i][index] = True
            in_others[i] += gathered(slot, index, counts)
    tally.report(account)
    if not occurs[0].any():
        raise nothing_used(rows, account)
    modes, orders, used = [], [], []
    for slot, seen, others in zip(plan.numbered, occurs, in_others, strict=True):
        mode, order = finished_mode(slot, seen, others, account)
        modes.append(mode)
        orders.append(order)
        used.append(int(np.count_nonzero(seen)))
    return Pieces(tuple(modes), tuple(used), measure.absent, rows, plan, tuple(orders))


def _columns(rows: TableRows, plan: CountingPlan) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """The columns of some cells at a time, and which of them are kept."""
    (count,) = one_row(rows.sql(f"SELECT count(*) FROM {TABLE}"))
    for start in range(0, count, PIECE):
        some = f"rowid >= {start} AND rowid < {start + PIECE}"
        found = rows.sql(f"SELECT * FROM {TABLE} WHERE {some}").fetchnumpy()
        columns = unpacked({name: np.asarray(c) for name, c in found.items()}, plan)
        yield columns, tallied(columns, plan)[0]
