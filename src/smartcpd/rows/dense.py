"""Sums over the slices of a dense array, a block of cells at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd.losses import Loss
from smartcpd.rows.sums import RowSums
from smartcpd.rows.terms import cell_terms

CELLS_AT_ONCE = 1 << 17

Block = tuple[slice | int, ...]


@dataclass(frozen=True)
class DenseSlices:
    """m = A H', with H the products of the other factors' rows: everything is a matrix product."""

    array: np.ndarray | None
    """None stands for zeros in every cell."""
    weights: np.ndarray | None
    loss: Loss
    factors: tuple[np.ndarray, ...]
    mode: int

    def at(self, A: np.ndarray) -> RowSums:
        n_rows, rank = A.shape
        upper = np.triu_indices(rank)
        F, G = np.zeros(n_rows), np.zeros((n_rows, rank))
        pairs = np.zeros((n_rows, upper[0].size))
        for block, H in self._blocks(n_rows):
            m = A @ H.T
            x, w = self._cells(block, m.shape)
            terms = cell_terms(self.loss, x, m).weighted(w)
            F += terms.value.sum(axis=1)
            G += terms.slope @ H
            pairs += terms.bend @ (H[:, upper[0]] * H[:, upper[1]])
        B = np.empty((n_rows, rank, rank))
        B[:, upper[0], upper[1]] = pairs
        B[:, upper[1], upper[0]] = pairs
        return RowSums(F, G, B)

    def row_totals(self) -> np.ndarray:
        assert self.array is not None
        n_rows = self.array.shape[self.mode]
        totals = np.zeros(n_rows)
        for block, H in self._blocks(n_rows):
            x, w = self._cells(block, (n_rows, len(H)))
            totals += x.sum(axis=1) if w is None else (w * x).sum(axis=1)
        return totals

    def _cells(
        self, block: Block, shape: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Data and weights of a block, a slice a row; what a missing cell holds is not read."""
        if self.array is None:
            return np.zeros(shape), None
        x = np.moveaxis(self.array, self.mode, 0)[block].astype(np.float64).reshape(shape)
        if self.weights is None:
            return x, None
        w = np.moveaxis(self.weights, self.mode, 0)[block].astype(np.float64).reshape(shape)
        x[w == 0] = 1.0  # a number that every loss accepts
        return x, w

    def _blocks(self, n_rows: int) -> Iterator[tuple[Block, np.ndarray]]:
        """Blocks of all slices at once, and the products H of their cells."""
        others = [A for n, A in enumerate(self.factors) if n != self.mode]
        for block in blocks([len(A) for A in others], max(1, CELLS_AT_ONCE // n_rows)):
            yield (slice(None), *block), _products(others, block)


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


def _products(factors: Sequence[np.ndarray], block: Block) -> np.ndarray:
    """The products of the rows that a block's cells have in these factors, in C order."""
    H = factors[0][block[0]]
    for A, rows in zip(factors[1:], block[1:], strict=True):
        H = (H[:, None, :] * A[rows]).reshape(-1, A.shape[1])
    return H
