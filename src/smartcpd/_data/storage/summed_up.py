"""Figures of a sparse tensor in memory: what fits need to know of it before they begin."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from smartcpd._data.storage.base import SparseStorage, impossible
from smartcpd._data.storage.events import Events
from smartcpd.errors import InvalidDataError
from smartcpd.losses import Data, Loss

PIECE = 1 << 20
"""Number of entries that are worked on at a time."""
TINY = 1e-300


class SummedUp(SparseStorage):
    """Sums, means and counts over the cells of a sparse tensor, and whether a loss can describe
    them.
    """

    indices: tuple[np.ndarray, ...]
    values: np.ndarray
    weights: np.ndarray | None
    missing: tuple[np.ndarray, ...]
    events: Events

    @property
    def nnz(self) -> int:
        return self.values.size

    @property
    def n_missing(self) -> int:
        return self.missing[0].size

    @cached_property
    def n_observed(self) -> float:
        if self.absent == "unobserved":
            return self.nnz if self.weights is None else float(self.weights.sum())
        known = self.n_cells - self.n_missing
        return known if self.weights is None else known + float((self.weights - 1).sum())

    @property
    def weighted(self) -> bool:
        return self.events.weights is not None

    @cached_property
    def heaviest(self) -> float:
        most = 1.0 if self.weights is None else float(self.weights.max(initial=0.0))
        return max(most, 1.0) if self.absent == "zero" else most

    @cached_property
    def row_weights(self) -> list[np.ndarray]:
        zeros = self.absent == "zero"
        own = np.ones(len(self.events)) if self.events.weights is None else self.events.weights
        means = []
        for column, size in zip(self.events.indices, self.shape, strict=True):
            sums = np.bincount(column, weights=own - zeros, minlength=size)
            means.append(zeros + sums * (size / self.n_cells))
        return means

    def unobserved_rows(self) -> list[np.ndarray]:
        columns = self.missing if self.absent == "zero" else self.indices
        found = []
        for column, size in zip(columns, self.shape, strict=True):
            # Entries are never missing, so that a row is unobserved if all its cells are.
            unseen = self.n_cells // size if self.absent == "zero" else 0
            counts = np.bincount(column, minlength=size) if column.size else np.zeros(size)
            found.append(np.flatnonzero(counts == unseen))
        return found

    def mean(self) -> float:
        return self._sum(self.values) / max(self.n_observed, TINY)

    def _sum(self, values: np.ndarray) -> float:
        if self.weights is None:
            return float(values.sum(dtype=np.float64))
        return float(self.weights @ values.astype(np.float64))

    def typical(self) -> float:
        if self.absent == "unobserved" or self.nnz == 0:
            return self.mean()
        chosen = np.random.default_rng(0).integers(self.nnz, size=4096)
        total = self.mean() * self.n_cells
        if total <= 0:
            return self.mean()
        model = np.full(chosen.size, total)
        for sums, column in zip(self.marginals(), self.indices, strict=True):
            model *= sums[column[chosen]] / total
        return float(model.mean())

    def mean_square(self) -> float:
        return self._sum(np.square(self.values, dtype=np.float64)) / max(self.n_observed, TINY)

    def marginals(self) -> list[np.ndarray]:
        sums = [np.zeros(size) for size in self.shape]
        # The sums are made a piece at a time, since bincount works on copies in 64 bits.
        for start in range(0, self.nnz, PIECE):
            piece = slice(start, start + PIECE)
            x = self.values[piece].astype(np.float64)
            if self.weights is not None:
                x *= self.weights[piece]
            for total, column in zip(sums, self.indices, strict=True):
                total += np.bincount(column[piece], weights=x, minlength=total.size)
        if self.weighted and self.absent == "zero":
            means = zip(sums, self.row_weights, strict=True)
            sums = [np.where(w > 0, total / np.maximum(w, TINY), 0.0) for total, w in means]
        return sums

    def lowest(self) -> float:
        stored = float(self.values.min()) if self.nnz else 0.0
        return stored if self.absent == "unobserved" else min(stored, 0.0)

    def check(self, loss: Loss) -> None:
        self.check_zeros(loss, "absent='unobserved'")
        if self.n_observed <= 0:
            raise InvalidDataError(f"{self!r} has no observed cell.")
        x = self.values
        bad = impossible(x, loss)
        if bad is not None and bad.any():
            at = int(np.argmax(bad))
            cell = ", ".join(str(int(c[at])) for c in self.indices)
            name = {True: "NaN", False: "infinity"}[bool(np.isnan(x[at]))]
            value = str(x[at]) if np.isfinite(x[at]) else name
            more = " Entries of one cell are added up." if loss.data is Data.BINARY else ""
            need = f"loss '{loss}' needs {loss.data.value[1]}"
            raise InvalidDataError(f"X[{cell}] is {value}: {need}.{more}")
