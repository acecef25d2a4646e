"""Cells that are too many for memory, grouped on disk and handed over piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.tables.account import Account
from smartcpd._data.tables.counting import (
    CountingPlan,
    Orders,
    Tally,
    grouping,
    kept_cells,
    placed,
    planned,
    surveyed,
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
    tally: Tally
    rows: TableRows
    plan: CountingPlan
    orders: Orders

    def __iter__(self) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
        """Yield indices and values of some cells at a time."""
        for columns, _ in _columns(self.rows, self.plan):
            if columns["rows"].size:
                yield placed(columns, self.orders), self.plan.measure.finished(columns)


def pieces(
    rows: TableRows, keys: Sequence[Key], measure: Measure, max_labels: int, account: Account
) -> tuple[Pieces, Measure]:
    """Aggregate the rows like `counting.cells`, but leave the cells with DuckDB."""
    plan = planned(rows, keys, measure, max_labels)
    rows.sql(f"DROP TABLE IF EXISTS {TABLE}")
    rows.sql(f"CREATE TEMP TABLE {TABLE} AS {grouping(rows, plan)}")
    modes, orders, used, tally = surveyed(_columns(rows, plan), rows, plan, account)
    return Pieces(modes, used, tally, rows, plan, orders), plan.measure


def _columns(rows: TableRows, plan: CountingPlan) -> Iterator[tuple[dict[str, np.ndarray], Tally]]:
    """Yield the columns of some cells at a time, and what is left out of them."""
    (count,) = one_row(rows.sql(f"SELECT count(*) FROM {TABLE}"))
    for start in range(0, count, PIECE):
        some = f"rowid >= {start} AND rowid < {start + PIECE}"
        found = rows.sql(f"SELECT * FROM {TABLE} WHERE {some}").fetchnumpy()
        yield kept_cells({name: np.asarray(c) for name, c in found.items()}, plan)
