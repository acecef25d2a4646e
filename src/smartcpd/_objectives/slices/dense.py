"""Sums over the slices of a dense array, a block of cells at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.threads import share
from smartcpd._data.storage import Dense
from smartcpd._kernels.row_terms import compiled_row_terms
from smartcpd._objectives.slices.sums import RowSums, entries_a_pass, slices_of, wide_factors
from smartcpd.losses import Loss

CELLS_AT_ONCE = 1 << 18
"""Number of cells that are copied to float64 at once, with the products of their rows."""
CELLS_WORTH_THREADS = 1 << 13
"""Number of cells whose terms take longer than a second thread takes to begin."""

Block = tuple[slice | int, ...]
Piece = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class DenseSlices:
    """Sums over the slices of a dense array, whose model is A H' with H the products of the other
    rows.
    """

    array: np.ndarray | None
    """The data, with the mode of the slices first; None stands for zeros in every cell."""
    weights: np.ndarray | None
    loss: Loss
    others: tuple[np.ndarray, ...]
    """The other factors, in their order."""
    n_threads: int = 1
    _kept: list[Piece] = field(default_factory=list, repr=False)

    exact: ClassVar[bool] = True

    def at(self, A: np.ndarray) -> RowSums:
        return _whole(self._summed(A, want_derivatives=True))

    def expected_bends(self, A: np.ndarray) -> np.ndarray:
        """The Hessians as they are expected of data that comes from this model, (rows x R x R)."""
        return _whole(self._summed(A, want_derivatives=True, expected=True)).bend

    def values(self, A: np.ndarray) -> np.ndarray:
        return self._summed(A, want_derivatives=False).value

    def _summed(self, A: np.ndarray, want_derivatives: bool, expected: bool = False) -> RowSums:
        """Return the sums, with the upper triangles of the Hessians."""
        loss, sums = self.loss, RowSums.zeros(*A.shape)
        compiled = compiled_row_terms()
        A = np.require(A, np.float64, ["C", "W"])
        blocks = (
            loss.values_block("float64"),
            loss.derivative_block("float64"),
            loss.bend_block("float64"),
        )
        for x, w, Ht in self._pieces(len(A)):
            if expected:
                x = np.require(loss.typical_data(A @ Ht), np.float64, ["C", "W"])

            def work(first: int, end: int, x: Any = x, w: Any = w, Ht: Any = Ht) -> None:
                compiled(
                    x[first:end],
                    w[first:end],
                    *blocks,
                    loss.params,
                    want_derivatives,
                    A[first:end],
                    Ht,
                    *(of_rows[first:end] for of_rows in sums),
                )

            share(work, len(x), self.n_threads if x.size >= CELLS_WORTH_THREADS else 1)
        return sums

    def _pieces(self, n_rows: int) -> Iterable[Piece]:
        """Cells, their weights and the products H', block by block; a single block is kept, since
        steps ask for its sums again and again."""
        if self._kept:
            return self._kept
        pieces = (self._piece(block, H, n_rows) for block, H in self._blocks(n_rows))
        if n_rows * math.prod(len(A) for A in self.others) > CELLS_AT_ONCE:
            return pieces
        self._kept.extend(pieces)
        return self._kept

    def _piece(self, block: Block, H: np.ndarray, n_rows: int) -> Piece:
        x, w = self._cells(block, (n_rows, len(H)))
        return (
            np.require(x, np.float64, ["C", "W"]),
            np.empty((0, 0)) if w is None else np.require(w, np.float64, ["C", "W"]),
            np.require(H.T, None, ["C", "W"]),
        )

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


def _whole(sums: RowSums) -> RowSums:
    """Fill in the lower triangles of the Hessians."""
    for r in range(sums.bend.shape[1]):
        sums.bend[:, r:, r] = sums.bend[:, r, r:]
    return sums


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


@slices_of.register
def _(
    storage: Dense, loss: Loss, factors: Sequence[np.ndarray], mode: int, n_threads: int = 1
) -> DenseSlices:
    wide = wide_factors(factors)
    weights = None if storage.weights is None else np.moveaxis(storage.weights, mode, 0)
    others = (*wide[:mode], *wide[mode + 1 :])
    return DenseSlices(np.moveaxis(storage.array, mode, 0), weights, loss, others, n_threads)


@entries_a_pass.register
def _(storage: Dense, loss: Loss, factors: Sequence[np.ndarray]) -> float:
    return storage.n_cells
