"""The rows of a mode that a page keeps, and their labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd._fitting.shares import Readable
from smartcpd.report import naming
from smartcpd.report.text import shortened

NUMBERS = 60_000
"""Number of entries of factors that a page holds, for all modes and components together."""
LEAST_ROWS = 24
MOST_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class ModeRows:
    """A mode, and those of its rows that a page can show and find."""

    number: int
    mode: Mode
    factor: np.ndarray
    kept: np.ndarray
    """Positions of the kept rows, in order."""
    texts: list[str]
    """The labels of the kept rows."""
    ranks: np.ndarray
    """The rank of each entry in its component: 1 for the largest, by size without sign."""
    signed: bool
    overall: np.ndarray
    """The average column of all components, each weighted by its share."""
    LITTLE: ClassVar[float] = 0.02
    """A distance from the average up to which a column is taken for it."""

    @property
    def complete(self) -> bool:
        """Whether the page keeps all rows of the mode."""
        return self.kept.size == len(self.mode)

    def strongest(self, component: int, count: int) -> np.ndarray:
        """Return the positions of the rows with the largest entries, largest first."""
        return np.argsort(-np.abs(self.factor[:, component]), kind="stable")[:count]

    def lift(self, row: int, component: int) -> float | None:
        """How many times as large an entry is as in the average of all components."""
        if self.signed or self.factor.shape[1] == 1 or not self.overall[row] > 0:
            return None
        return float(self.factor[row, component] / self.overall[row])

    def telling(self, component: int) -> tuple[int, float]:
        """Return the row that sets a component apart most, and how far its column is from others.

        The distance is that of Kullback and Leibler from the average column. Of a single component
        it is the largest row, which says nothing.
        """
        rows, distances = self._telling
        return int(rows[component]), float(distances[component])

    @cached_property
    def _telling(self) -> tuple[np.ndarray, np.ndarray]:
        columns = np.abs(self.factor)
        columns = columns / np.maximum(columns.sum(axis=0), 1e-300)
        if columns.shape[1] == 1:
            return columns.argmax(axis=0), np.zeros(1)
        average = np.maximum(self.overall, 1e-300)[:, None]
        parts = columns * np.log(np.where(columns > 0, columns / average, 1.0))
        return parts.argmax(axis=0), np.maximum(parts.sum(axis=0), 0.0)

    def as_overall(self, component: int) -> bool:
        """Whether a column is about the average one: the mode says nothing of this component."""
        return self.factor.shape[1] > 1 and self.telling(component)[1] <= self.LITTLE

    def text_of(self, row: int) -> str:
        """Return the label of a row."""
        return self.mode_texts([row])[0]

    def mode_texts(self, rows: Any) -> list[str]:
        """Return labels of some rows as people write them, cut where nobody would read on."""
        return [shortened(text) for text in self.mode.text(rows)]

    def described(self) -> dict[str, Any]:
        """Return what the page's search and pointer need, in plain values."""
        values = self.factor[self.kept]
        return {
            "name": self.mode.name,
            "kind": str(self.mode.kind),
            "size": len(self.mode),
            "rows": self.kept.tolist(),
            "labels": self.texts,
            "values": [[_short(v) for v in column] for column in values.T.tolist()],
            "ranks": self.ranks[self.kept].T.tolist(),
            "overall": [_short(v) for v in self.overall[self.kept].tolist()],
        }


def kept_rows(shown: Readable) -> list[ModeRows]:
    """Choose the rows of every mode that fit into a page."""
    model = shown.model
    room = NUMBERS // (model.rank * model.order)
    room = min(max(room, LEAST_ROWS), MOST_ROWS)
    return [
        _kept(n, mode, model.factors[n], room, shown)
        for n, mode in enumerate(naming.named(model.named_modes))
    ]


def _kept(number: int, mode: Mode, factor: np.ndarray, room: int, shown: Readable) -> ModeRows:
    size, rank = factor.shape
    order = np.argsort(-np.abs(factor), axis=0, kind="stable")
    ranks = np.empty((size, rank), dtype=np.int32)
    np.put_along_axis(ranks, order, np.arange(1, size + 1, dtype=np.int32)[:, None], axis=0)
    if size <= room:
        kept = np.arange(size)
    else:
        # The best rows of every component are taken in turn, so that each has its most important
        # ones.
        chosen = list(dict.fromkeys(order[: room + 1].ravel().tolist()))[:room]
        if mode.kind is not Kind.CATEGORY:
            spaced = np.linspace(0, size - 1, room // 2).round().astype(np.int64)
            chosen = [*spaced.tolist(), *chosen[: room - spaced.size]]
        kept = np.unique(np.array(chosen))
    texts = [shortened(text) for text in mode.text(kept)]
    sizes = np.abs(factor)
    overall = sizes / np.maximum(sizes.sum(axis=0), 1e-300) @ shown.shares
    return ModeRows(number, mode, factor, kept, texts, ranks, shown.signed, overall)


def _short(value: float) -> float:
    """Round to four digits, which are more than a picture shows."""
    return float(f"{value:.4g}")
