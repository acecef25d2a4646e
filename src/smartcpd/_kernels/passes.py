"""Values and gradients over many fibers of one mode, for all modes at once.

A fiber's cells share everything but one index. With K the rows that the other factors give the
fibers, m = K A' and D the derivatives, one mode's gradient is D' K; each other mode's is what is
left of T = D A after the factors of the rest. The gradient thus costs three matrix products,
however many modes there are, and nothing larger than a block of cells is ever stored.

The fibers come in groups that do not depend on the number of threads; each group has its own sums
in float64, and these are added in order. Any number of threads therefore gives the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.copying import add_matrix, copy
from smartcpd._kernels.weights import apply_weights, hide_missing, weighted_sum


@subroutine
def fill_products(A, offsets, fibers, mode, K):
    """K[f] = the product of the rows of fiber f, one of each factor but ``mode``'s."""
    n_fibers, rank = K.shape
    first = 1 if mode == 0 else 0
    for f in range(n_fibers):
        row = A[offsets[first] + fibers[f, first]]
        for r in range(rank):
            K[f, r] = row[r]
        for k in range(first + 1, fibers.shape[1]):
            if k != mode:
                row = A[offsets[k] + fibers[f, k]]
                for r in range(rank):
                    K[f, r] *= row[r]


@subroutine
def scatter(A, offsets, fibers, mode, T, G):
    """Add T[f], times the rows of all but two factors, to the row of each mode but ``mode``."""
    n_fibers, rank = T.shape
    order = fibers.shape[1]
    rest = np.empty(rank, A.dtype)
    for k in range(order):
        if k == mode:
            continue
        for f in range(n_fibers):
            copy(T[f], rest)
            for j in range(order):
                if j != k and j != mode:
                    row = A[offsets[j] + fibers[f, j]]
                    for r in range(rank):
                        rest[r] *= row[r]
            out = G[offsets[k] + fibers[f, k]]
            for r in range(rank):
                out[r] += rest[r]


@subroutine
def read_fibers(lines, handle, weigh, weights_handle, offsets, mode, chosen, A, At_n, K, x, m, w):
    """Fill K with the fibers' products, x with their data, m with the model, w with weights.

    ``w`` is empty where all cells count the same; elsewhere x is 1 in missing cells.
    """
    shape = K.shape[0], At_n.shape[1]
    fill_products(A, offsets, chosen, mode, K)
    lines(handle, chosen, mode, 0, x.reshape(shape))
    np.dot(K, At_n, m.reshape(shape))
    if w.size > 0:
        weigh(weights_handle, chosen, mode, 0, w.reshape(shape))
        hide_missing(x, w)


@subroutine
def add_gradient(A, A_n, offsets, mode, chosen, D, K, T, partial, G):
    """Add the gradient that the cells' derivatives D cause to G; T and ``partial`` are scratch."""
    np.dot(D.T, K, partial)
    add_matrix(partial, G[offsets[mode] : offsets[mode + 1]])
    np.dot(D, A_n, T)
    scatter(A, offsets, chosen, mode, T, G)


def fiber_pass(
    lines: kinds.Gather,
    handle: kinds.Integers,
    offsets: kinds.Integers,
    mode: kinds.Integer,
    fibers: kinds.IntegerStack,
    batch: kinds.Integer,
    weigh: kinds.Gather,
    weights_handle: kinds.Integers,
    value: kinds.Total,
    cell_values: kinds.Entrywise,
    derivative: kinds.Entrywise,
    loss_p: kinds.Params,
    want_gradient: kinds.Flag,
    A: kinds.Matrix,
    values: kinds.Doubles,
    G: kinds.DoubleStack,
):
    """Add the loss of group k's fibers to ``values[k]`` and its gradient to ``G[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    ``weigh`` reads the cells' weights by a handle, which is empty where all count the same; only
    with weights are values taken from ``cell_values``, cell by cell.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    A_n = A[offsets[mode] : offsets[mode + 1]]
    At_n = np.ascontiguousarray(A_n.T)
    n_rows = A_n.shape[0]
    for group in range(n_groups):
        x_buffer = np.empty(batch * n_rows, A.dtype)
        m_buffer = np.empty(batch * n_rows, A.dtype)
        d_buffer = np.empty(batch * n_rows, A.dtype)
        w_buffer = np.empty(batch * n_rows if weights_handle.size > 0 else 0, A.dtype)
        K_buffer = np.empty((batch, rank), A.dtype)
        T_buffer = np.empty((batch, rank), A.dtype)
        partial = np.empty((n_rows, rank), A.dtype)
        for start in range(0, group_size, batch):
            n = min(batch, group_size - start)
            chosen = fibers[group, start : start + n]
            x, m, d = x_buffer[: n * n_rows], m_buffer[: n * n_rows], d_buffer[: n * n_rows]
            w, K, T = w_buffer[: n * n_rows], K_buffer[:n], T_buffer[:n]
            read_fibers(
                lines, handle, weigh, weights_handle, offsets, mode, chosen, A, At_n, K, x, m, w
            )
            values[group] += weighted_sum(value, cell_values, x, m, loss_p, w, d)
            if want_gradient:
                derivative(x, m, loss_p, d)
                apply_weights(d, w)
                D = d.reshape(n, n_rows)
                add_gradient(A, A_n, offsets, mode, chosen, D, K, T, partial, G[group])


@cache
def compiled_fiber_pass(dtype: str) -> Any:
    return kinds.compile_annotated(fiber_pass, dtype=dtype)
