"""The rows of a mode that a page keeps, and their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd._fitting.shares import Readable
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

    @property
    def complete(self) -> bool:
        """Whether the page keeps all rows of the mode."""
        return self.kept.size == len(self.mode)

    def strongest(self, component: int, count: int) -> np.ndarray:
        """Return the positions of the rows with the largest entries, largest first."""
        return np.argsort(-np.abs(self.factor[:, component]), kind="stable")[:count]

    def text_of(self, row: int) -> str:
        """Return the label of a row."""
        return self.mode_texts([row])[0]

    def mode_texts(self, rows: Any) -> list[str]:
        """Return labels of some rows as people write them, cut where nobody would read on."""
        return [shortened(text) for text in _texts(self.mode, np.asarray(rows))]

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
        }


def kept_rows(shown: Readable) -> list[ModeRows]:
    """Choose the rows of every mode that fit into a page."""
    model = shown.model
    room = NUMBERS // (model.rank * model.order)
    room = min(max(room, LEAST_ROWS), MOST_ROWS)
    return [
        _kept(n, mode, model.factors[n], room, shown.signed)
        for n, mode in enumerate(model.named_modes)
    ]


def _kept(number: int, mode: Mode, factor: np.ndarray, room: int, signed: bool) -> ModeRows:
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
    texts = [shortened(text) for text in _texts(mode, kept)]
    return ModeRows(number, mode, factor, kept, texts, ranks, signed)


def _texts(mode: Mode, rows: np.ndarray) -> list[str]:
    if rows.size == len(mode):
        return mode.text()
    if mode.labels.dtype.kind == "M":
        # The labels are made together, since which parts of a date may be left out depends on all.
        length = len(mode.text()[0]) if len(mode) <= MOST_ROWS else 19
        return [str(d).replace("T", " ")[:length] for d in mode.labels[rows]]
    return Mode(mode.name, mode.labels[rows], mode.kind).text()


def _short(value: float) -> float:
    """Round to four digits, which are more than a picture shows."""
    return float(f"{value:.4g}")
