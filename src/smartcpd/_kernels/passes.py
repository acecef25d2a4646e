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

import numba
import numpy as np
from numba import prange, types

from smartcpd._kernels.blocks import precision
from smartcpd._kernels.compiling import FASTMATH, compile_kernel, in_precision
from smartcpd._kernels.copying import add_matrix, copy
from smartcpd._kernels.weights import apply_weights, hide_missing, sum_in_order


@numba.njit(error_model="numpy", fastmath=FASTMATH)
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


@numba.njit(error_model="numpy", fastmath=FASTMATH)
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


def fiber_pass(
    lines,
    handle,
    offsets,
    mode,
    fibers,
    batch,
    weigh,
    weights_handle,
    value,
    cell_values,
    derivative,
    loss_p,
    want_gradient,
    A,
    values,
    G,
):
    """Add the loss of group k's fibers to ``values[k]`` and its gradient to ``G[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    ``weigh`` reads the cells' weights by a handle, which is empty where all count the same; only
    with weights are values taken from ``cell_values``, cell by cell.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    first = offsets[mode]
    n_rows = offsets[mode + 1] - first
    A_n = A[first : first + n_rows]
    At_n = np.ascontiguousarray(A_n.T)
    weighted = weights_handle.size > 0
    for group in prange(n_groups):
        x_buffer = np.empty(batch * n_rows, A.dtype)
        m_buffer = np.empty(batch * n_rows, A.dtype)
        d_buffer = np.empty(batch * n_rows, A.dtype)
        w_buffer = np.empty(batch * n_rows if weighted else 0, A.dtype)
        K_buffer = np.empty(batch * rank, A.dtype)
        T_buffer = np.empty(batch * rank, A.dtype)
        partial = np.empty((n_rows, rank), A.dtype)
        for start in range(0, group_size, batch):
            stop = min(start + batch, group_size)
            n_fibers = stop - start
            cells = n_fibers * n_rows
            chosen = fibers[group, start:stop]
            x, m, d = x_buffer[:cells], m_buffer[:cells], d_buffer[:cells]
            K = K_buffer[: n_fibers * rank].reshape(n_fibers, rank)
            fill_products(A, offsets, chosen, mode, K)
            lines(handle, chosen, mode, 0, x.reshape(n_fibers, n_rows))
            np.dot(K, At_n, m.reshape(n_fibers, n_rows))
            if weighted:
                w = w_buffer[:cells]
                weigh(weights_handle, chosen, mode, 0, w.reshape(n_fibers, n_rows))
                hide_missing(x, w)
                cell_values(x, m, loss_p, d)
                apply_weights(d, w)
                values[group] += sum_in_order(d)
            else:
                values[group] += value(x, m, loss_p)
            if want_gradient:
                derivative(x, m, loss_p, d)
                if weighted:
                    apply_weights(d, w_buffer[:cells])
                D = d.reshape(n_fibers, n_rows)
                np.dot(D.T, K, partial)
                add_matrix(partial, G[group, first : first + n_rows])
                T = T_buffer[: n_fibers * rank].reshape(n_fibers, rank)
                np.dot(D, A_n, T)
                scatter(A, offsets, chosen, mode, T, G[group])


@cache
def compiled_fiber_pass(dtype: str, parallel: bool) -> Any:
    kinds = precision(dtype)
    signature = types.void(
        types.FunctionType(kinds.gather),
        types.int64[::1],
        types.int64[::1],
        types.intp,
        types.Array(types.int64, 3, "C"),
        types.intp,
        types.FunctionType(kinds.gather),
        types.int64[::1],
        types.FunctionType(kinds.total),
        types.FunctionType(kinds.entrywise),
        types.FunctionType(kinds.entrywise),
        kinds.params,
        types.boolean,
        kinds.matrix,
        types.float64[::1],
        types.Array(types.float64, 3, "C"),
    )
    name = f"fiber_pass.{dtype}.{'parallel' if parallel else 'serial'}"
    return compile_kernel(in_precision(fiber_pass, kinds.dtype), signature, name, parallel=parallel)
