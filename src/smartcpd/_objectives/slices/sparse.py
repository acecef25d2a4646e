"""Sums over the slices of a sparse tensor: its entries one by one, its zeros all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from smartcpd._common.stacked import stack
from smartcpd._data.storage import SparseTensor
from smartcpd._data.storage.events import Events
from smartcpd._kernels.row_sums import compiled_add_cells
from smartcpd._objectives import backgrounds
from smartcpd._objectives.backgrounds import Background, ClosedForm, HotCells
from smartcpd._objectives.backgrounds.quadratic import Quadratic
from smartcpd._objectives.backgrounds.sampled import N_CELLS, Sampled, fitted_quadratic
from smartcpd._objectives.cancelling import at_worst
from smartcpd._objectives.slices.dense import DenseSlices
from smartcpd._objectives.slices.sums import RowSums, entries_a_pass, slices_of, wide_factors
from smartcpd._objectives.slices.terms import Terms, cell_terms, quadratic_terms
from smartcpd.losses import Loss

EVENTS_AT_ONCE = 1 << 15
PASSED_OVER = 1 << 22
"""Up to so many cells, zeros are looked at one by one where they have no closed form."""
HEADROOM = 2.0
SAMPLED_A_ROW = 256
MOST_SAMPLED = 1 << 22


@dataclass
class SparseSlices:
    """Sums over the slices of a sparse tensor: the loss of zeros for every cell, and what entries
    add.

    Where the background looks at some cells only, they stay the same from call to call as long as
    they may, so that sums compare.
    """

    storage: SparseTensor
    loss: Loss
    factors: tuple[np.ndarray, ...]
    mode: int
    n_threads: int = 1
    _chosen: Background | None = field(default=None, repr=False)
    exact: ClassVar[bool] = False

    def at(self, A: np.ndarray) -> RowSums:
        return self._summed(A, want_derivatives=True)

    def values(self, A: np.ndarray) -> np.ndarray:
        return self._summed(A, want_derivatives=False).value

    def _summed(self, A: np.ndarray, want_derivatives: bool) -> RowSums:
        """Return the sums; without derivatives of the entries unless they are wanted."""
        sums = RowSums.zeros(*A.shape)
        factors = [A if n == self.mode else F for n, F in enumerate(self.factors)]
        factors = [np.ascontiguousarray(F, dtype=np.float64) for F in factors]
        behind = None
        if self.storage.absent == "zero":
            behind = self._add_background(factors, sums)
        without = sums.value.copy()
        entries = _Entries(self.loss, behind, self.storage)
        self._add(self.storage.events, factors, sums, entries, want_derivatives)
        sums.value[:] = at_worst(sums.value, without)
        return sums

    def row_totals(self) -> np.ndarray:
        storage = self.storage
        x = storage.values.astype(np.float64)
        if storage.weights is not None:
            x = x * storage.weights
        column = storage.indices[self.mode]
        return np.bincount(column, weights=x, minlength=storage.shape[self.mode])

    def _add_background(self, factors: list[np.ndarray], sums: RowSums) -> Quadratic | None:
        """Add the loss of a tensor of zeros; return the quadratic that it is, or None if it is
        none.
        """
        loss = self.loss
        if loss.background is not None:
            quadratic = Quadratic(*loss.background)
            _add_quadratic(quadratic, factors, self.mode, sums)
            return quadratic
        chosen = self._chosen = self._background(factors)
        if isinstance(chosen, backgrounds.Exhaustive):
            others = (F for n, F in enumerate(factors) if n != self.mode)
            zeros = DenseSlices(None, None, loss, tuple(others), self.n_threads)
            for total, part in zip(sums, zeros.at(factors[self.mode]), strict=True):
                total += part
        elif isinstance(chosen, HotCells):
            quadratic = Quadratic(0.0, *loss.taylor_at_zero(loss.params))
            _add_quadratic(quadratic, factors, self.mode, sums)
            self._add(chosen.cells, factors, sums, _Correction(loss, quadratic, None))
        else:
            assert isinstance(chosen, Sampled)
            quadratic = fitted_quadratic(loss, stack(factors), chosen.pilot)
            _add_quadratic(quadratic, factors, self.mode, sums)
            weights = chosen.cells.values
            self._add(chosen.cells, factors, sums, _Correction(loss, quadratic, weights))
        return None

    def _background(self, factors: list[np.ndarray]) -> Background:
        """Return the background of the call before, if it still holds, or a new one."""
        known = self._chosen
        stale = isinstance(known, HotCells) and known.is_stale(stack(factors))
        if known is not None and not stale:
            return known
        loss, shape = self.loss, self.storage.shape
        if math.prod(shape) > PASSED_OVER:
            # The cells are those that would be large in a larger model, so that rows may grow.
            factors = [(HEADROOM if n == self.mode else 1.0) * F for n, F in enumerate(factors)]
            hot = backgrounds.choose(loss, shape, self.n_threads, stack(factors), exact=False)
            if isinstance(hot, HotCells):
                return hot
        found = backgrounds.choose(loss, shape, self.n_threads, stack(factors))
        if isinstance(found, Sampled):
            n_cells = min(MOST_SAMPLED, max(N_CELLS, SAMPLED_A_ROW * shape[self.mode]))
            return Sampled(loss, shape, self.n_threads, stack(factors), n_cells)
        return found

    def _add(
        self,
        events: Events,
        factors: list[np.ndarray],
        sums: RowSums,
        part: _Entries | _Correction,
        want_derivatives: bool = True,
    ) -> None:
        """Add what some cells contribute."""
        add = compiled_add_cells()
        for start in range(0, len(events), EVENTS_AT_ONCE):
            piece = slice(start, start + EVENTS_AT_ONCE)
            index = events.rows(piece)
            others = [
                F[i] for n, (F, i) in enumerate(zip(factors, index, strict=True)) if n != self.mode
            ]
            H = math.prod(others[1:], start=others[0])
            rows = index[self.mode].astype(np.int64)
            m = np.einsum("cr,cr->c", H, factors[self.mode][rows])
            terms = part.terms(events, piece, m)
            if want_derivatives:
                add(rows, *terms, np.ascontiguousarray(H), *sums)
            else:
                sums.value[:] += np.bincount(rows, terms.value, len(sums.value))


@dataclass(frozen=True)
class _Entries:
    """Entries of the tensor: their loss, less what the background has in their place."""

    loss: Loss
    behind: Quadratic | None
    storage: SparseTensor

    def terms(self, events: Events, piece: slice, m: np.ndarray) -> Terms:
        x = events.values[piece].astype(np.float64)
        w = None if events.weights is None else events.weights[piece]
        if w is not None:
            x[w == 0] = 1.0  # a number that every loss accepts
        own = cell_terms(self.loss, x, m).weighted(w)
        if self.storage.absent == "unobserved":
            return own
        if self.behind is None:
            return own.minus(cell_terms(self.loss, np.zeros_like(m), m))
        return own.minus(quadratic_terms(self.behind, m))


@dataclass(frozen=True)
class _Correction:
    """Corrections at chosen zeros: what a quadratic leaves of their loss, times a weight."""

    loss: Loss
    quadratic: Quadratic
    weights: np.ndarray | None

    def terms(self, events: Events, piece: slice, m: np.ndarray) -> Terms:
        left = cell_terms(self.loss, np.zeros_like(m), m).minus(quadratic_terms(self.quadratic, m))
        return left if self.weights is None else left.weighted(self.weights[piece])


def _add_quadratic(q: Quadratic, factors: list[np.ndarray], mode: int, sums: RowSums) -> None:
    """Add the sum of q(m) over the slice of every row, from column sums and Gram matrices."""
    others = [F for n, F in enumerate(factors) if n != mode]
    A = factors[mode]
    total = np.prod([F.sum(axis=0) for F in others], axis=0)
    gram = np.prod([F.T @ F for F in others], axis=0)
    bent = A @ gram
    n_cells = math.prod(len(F) for F in others)
    sums.value[:] += q.c0 * n_cells + q.c1 * (A @ total) + 0.5 * q.c2 * (bent * A).sum(axis=1)
    sums.slope[:] += q.c1 * total + q.c2 * bent
    sums.bend[:] += q.c2 * gram


@slices_of.register
def _(
    storage: SparseTensor,
    loss: Loss,
    factors: Sequence[np.ndarray],
    mode: int,
    n_threads: int = 1,
) -> SparseSlices:
    return SparseSlices(storage, loss, wide_factors(factors), mode, n_threads)


@entries_a_pass.register
def _(storage: SparseTensor, loss: Loss, factors: Sequence[np.ndarray]) -> float:
    if storage.absent == "unobserved":
        return storage.nnz
    behind = backgrounds.choose(loss, storage.shape, 1, stack(factors), exact=False)
    return storage.nnz if isinstance(behind, ClosedForm | HotCells) else storage.n_cells
