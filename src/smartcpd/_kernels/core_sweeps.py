"""Alternating least squares on a small tensor, several starts one after the other.

A core is so small that calls of NumPy cost more than what they compute: all sweeps of all starts
are made in one call.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.copying import copy_matrix

RIDGE = 1e-6
"""The share of the mean diagonal entry that is added to the diagonal of the normal equations."""
ROUNDING = 1e-12
"""A residual counts as worse if it rises by more than this share of itself."""
FASTER, SLOWER = 1.05, 0.7
"""Factors by which the momentum changes after a sweep that lowered the residual, or did not."""


@subroutine
def extrapolate(A, before, weight, out):
    for i in range(A.shape[0]):
        for r in range(A.shape[1]):
            out[i, r] = A[i, r] + weight * (A[i, r] - before[i, r])


@subroutine
def fill_gram(A, gram):
    """gram = A'A."""
    n_rows, rank = A.shape
    gram[:] = 0.0
    for i in range(n_rows):
        for r in range(rank):
            a = A[i, r]
            for s in range(rank):
                gram[r, s] += a * A[i, s]


@subroutine
def fill_normal_matrix(grams, mode, L):
    """The entrywise product of all Gram matrices but one, with a ridge."""
    rank = len(L)
    L[:] = 1.0
    for k in range(len(grams)):
        if k != mode:
            for r in range(rank):
                for s in range(rank):
                    L[r, s] *= grams[k, r, s]
    trace = 0.0
    for r in range(rank):
        trace += L[r, r]
    for r in range(rank):
        L[r, r] += RIDGE * trace / rank + 1e-30


@subroutine
def factorise(L):
    """Cholesky's factor in place of a matrix; a pivot that rounding made negative is lifted."""
    rank = len(L)
    for j in range(rank):
        largest = L[j, j]
        for k in range(j):
            for i in range(j, rank):
                L[i, j] -= L[i, k] * L[j, k]
        pivot = np.sqrt(max(L[j, j], 0.1 * RIDGE * largest))
        for i in range(j, rank):
            L[i, j] /= pivot


@subroutine
def solve_rows(L, B, column, A):
    """A = B (LL')^-1."""
    n_rows, rank = A.shape
    for i in range(n_rows):
        for r in range(rank):
            total = np.float64(B[i, r])
            for k in range(r):
                total -= L[r, k] * column[k]
            column[r] = total / L[r, r]
        for r in range(rank - 1, -1, -1):
            total = column[r] / L[r, r]
            column[r] = total
            for k in range(r):
                column[k] -= L[r, k] * total
        for r in range(rank):
            A[i, r] = column[r]


@subroutine
def advance(index, shape):
    """The next index in C order."""
    for k in range(index.size - 1, -1, -1):
        index[k] += 1
        if index[k] < shape[k]:
            return
        index[k] = 0


@subroutine
def project(partial, A, shape, offsets, mode, index, row, out):
    """out[i] = the sum of partial[c] times the rows of all factors but the last and ``mode``'s,
    over the cells c whose index in ``mode`` is i."""
    n_cells, rank = partial.shape
    out[:] = 0.0
    index[:] = 0
    for c in range(n_cells):
        for r in range(rank):
            row[r] = partial[c, r]
        for k in range(index.size):
            if k != mode:
                place = offsets[k] + index[k]
                for r in range(rank):
                    row[r] *= A[place, r]
        i = index[mode]
        for r in range(rank):
            out[i, r] += row[r]
        advance(index, shape)


@subroutine
def fill_products(A, shape, offsets, index, H):
    """H[c] = the product of the rows that cell c has in all factors but the last."""
    n_cells, rank = H.shape
    index[:] = 0
    for c in range(n_cells):
        for r in range(rank):
            H[c, r] = A[index[0], r]
        for k in range(1, index.size):
            place = offsets[k] + index[k]
            for r in range(rank):
                H[c, r] *= A[place, r]
        advance(index, shape)


def core_sweeps(
    core: kinds.Matrix,
    shape: kinds.Integers,
    offsets: kinds.Integers,
    square: kinds.Double,
    times: kinds.Integer,
    A: kinds.Stack,
    before: kinds.Stack,
    residuals: kinds.Doubles,
    momentum: kinds.Doubles,
    plain: kinds.Flags,
):
    """Make ``times`` sweeps from every start, in place.

    ``core`` has its last mode in its columns and ``square`` is the sum of its squares. Start s has
    the stacked factors A[s], those of its last good sweep in ``before[s]``, and begins a sweep
    where the two point to, unless it is ``plain``. Sums of many terms are in float64.
    """
    n_starts, _, rank = A.shape
    order, last = shape.size, shape.size - 1
    index = np.zeros(last, np.int64)
    grams = np.empty((order, rank, rank))
    L, column = np.empty((rank, rank)), np.empty(rank)
    row = np.empty(rank, A.dtype)
    projected = np.empty((max(shape), rank), A.dtype)
    cells = np.empty((len(core), rank), A.dtype)
    new = np.empty_like(A[0])
    for s in range(n_starts):
        for _ in range(times):
            weight = 0.0 if plain[s] else momentum[s]
            extrapolate(A[s], before[s], weight, new)
            for k in range(order):
                fill_gram(new[offsets[k] : offsets[k + 1]], grams[k])
            # All modes but the last share a contraction, since the last factor stays as it was.
            np.dot(core, new[offsets[last] :], cells)
            for k in range(order):
                F = new[offsets[k] : offsets[k + 1]]
                B = projected[: shape[k]]
                if k < last:
                    project(cells, new, shape, offsets, k, index, row, B)
                else:
                    fill_products(new, shape, offsets, index, cells)
                    np.dot(core.T, cells, B)
                fill_normal_matrix(grams, k, L)
                factorise(L)
                solve_rows(L, B, column, F)
                fill_gram(F, grams[k])
            inner, norm = 0.0, 0.0
            for i in range(shape[last]):
                for r in range(rank):
                    inner += np.float64(projected[i, r]) * new[offsets[last] + i, r]
            for r in range(rank):
                for t in range(rank):
                    product = 1.0
                    for k in range(order):
                        product *= grams[k, r, t]
                    norm += product
            residual = square - 2.0 * inner + norm
            good = residual <= residuals[s] * (1.0 + ROUNDING)
            if not (good or (plain[s] and np.isfinite(residual))):
                momentum[s] *= SLOWER
                plain[s] = True
                continue
            copy_matrix(A[s], before[s])
            copy_matrix(new, A[s])
            residuals[s] = residual
            momentum[s] = min(1.0, FASTER * momentum[s])
            plain[s] = False


@cache
def compiled_core_sweeps(dtype: str) -> Any:
    return kinds.compile_annotated(core_sweeps, dtype=dtype)
