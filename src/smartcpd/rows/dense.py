"""Sums over the slices of a dense array, a block of cells at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd.losses import Loss
from smartcpd.rows.sums import RowSums
from smartcpd.rows.terms import cell_terms, cell_values

CELLS_AT_ONCE = 1 << 14
"""Few enough for all that is computed of them to stay in the cache."""

Block = tuple[slice | int, ...]


@dataclass(frozen=True)
class DenseSlices:
    """m = A H', with H the products of the other factors' rows: everything is a matrix product."""

    array: np.ndarray | None
    """The data, with the mode of the slices first; None stands for zeros in every cell."""
    weights: np.ndarray | None
    loss: Loss
    others: tuple[np.ndarray, ...]
    """The other factors, in their order."""

    def at(self, A: np.ndarray) -> RowSums:
        rank = A.shape[1]
        sums = RowSums.zeros(*A.shape)
        for block, H in self._blocks(len(A)):
            m = A @ H.T
            x, w = self._cells(block, m.shape)
            terms = cell_terms(self.loss, x, m).weighted(w)
            sums.value[:] += terms.value.sum(axis=1)
            sums.slope[:] += terms.slope @ H
            for r in range(rank):
                sums.bend[:, r, r:] += terms.bend @ (H[:, r, None] * H[:, r:])
        for r in range(rank):
            sums.bend[:, r:, r] = sums.bend[:, r, r:]
        return sums

    def values(self, A: np.ndarray) -> np.ndarray:
        F = np.zeros(len(A))
        for block, H in self._blocks(len(A)):
            m = A @ H.T
            x, w = self._cells(block, m.shape)
            found = cell_values(self.loss, x, m)
            F += found.sum(axis=1) if w is None else np.where(w != 0, w * found, 0.0).sum(axis=1)
        return F

    def row_totals(self) -> np.ndarray:
        assert self.array is not None
        n_rows = len(self.array)
        totals = np.zeros(n_rows)
        for block, H in self._blocks(n_rows):
            x, w = self._cells(block, (n_rows, len(H)))
            totals += x.sum(axis=1) if w is None else (w * x).sum(axis=1)
        return totals

    def _cells(self, block: Block, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray | None]:
        """Data and weights of a block, a slice a row; what a missing cell holds is not read."""
        if self.array is None:
            return np.zeros(shape), None
        x = self.array[block].astype(np.float64, copy=False).reshape(shape)
        if self.weights is None:
            return x, None
        w = self.weights[block].astype(np.float64, copy=False).reshape(shape)
        return np.where(w == 0, 1.0, x), w  # 1 is a number that every loss accepts

    def _blocks(self, n_rows: int) -> Iterator[tuple[Block, np.ndarray]]:
        """Blocks of all slices at once, and the products H of their cells."""
        shape = [len(A) for A in self.others]
        for block in blocks(shape, max(1, CELLS_AT_ONCE // n_rows)):
            yield (slice(None), *block), products(self.others, block)


def blocks(shape: Sequence[int], limit: int) -> Iterator[Block]:
    """Cut a box into blocks of at most about ``limit`` cells that are contiguous in C order."""
    inner, cut = 1, len(shape) - 1
    while cut > 0 and inner * shape[cut] <= limit:
        inner *= shape[cut]
        cut -= 1
    step = max(1, limit // inner)
    whole = (slice(None),) * (len(shape) - cut - 1)
    for outer in np.ndindex(*shape[:cut]):
        for start in range(0, shape[cut], step):
            yield (*(slice(i, i + 1) for i in outer), slice(start, start + step), *whole)


def products(factors: Sequence[np.ndarray], block: Block | None = None) -> np.ndarray:
    """The products of the rows that the cells of a box, or of a block of it, have in these factors,
    in C order."""
    places = (slice(None),) * len(factors) if block is None else block
    H = factors[0][places[0]]
    for A, rows in zip(factors[1:], places[1:], strict=True):
        H = (H[:, None, :] * A[rows]).reshape(-1, A.shape[1])
    return H
