"""The gradient of one mode and its convex part, over all fibers of that mode.

Multiplicative updates need two sums of derivatives times the products K of the rows of the other
factors. With fibers along the mode itself each of them is one matrix product, and the model values
that both begin with are computed once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import prange, types

from smartcpd._kernels.blocks import precision
from smartcpd._kernels.compiling import compile_kernel, in_precision
from smartcpd._kernels.passes import fill_products
from smartcpd._kernels.weights import apply_weights, hide_missing, sum_in_order


def split_pass(
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
    convex,
    loss_p,
    want_value,
    A,
    values,
    G,
    C,
):
    """Add group k's loss to ``values[k]``, its gradient to ``G[k]``, the convex part's to ``C[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    Weights are those of `passes`.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    first = offsets[mode]
    n_rows = offsets[mode + 1] - first
    At_n = np.ascontiguousarray(A[first : first + n_rows].T)
    weighted = weights_handle.size > 0
    for group in prange(n_groups):
        x_buffer = np.empty(batch * n_rows, A.dtype)
        m_buffer = np.empty(batch * n_rows, A.dtype)
        d_buffer = np.empty(batch * n_rows, A.dtype)
        w_buffer = np.empty(batch * n_rows if weighted else 0, A.dtype)
        K_buffer = np.empty(batch * rank, A.dtype)
        partial = np.empty((n_rows, rank), A.dtype)
        for start in range(0, group_size, batch):
            stop = min(start + batch, group_size)
            n_fibers = stop - start
            cells = n_fibers * n_rows
            chosen = fibers[group, start:stop]
            x, m, d = x_buffer[:cells], m_buffer[:cells], d_buffer[:cells]
            D = d.reshape(n_fibers, n_rows)
            K = K_buffer[: n_fibers * rank].reshape(n_fibers, rank)
            fill_products(A, offsets, chosen, mode, K)
            lines(handle, chosen, mode, 0, x.reshape(n_fibers, n_rows))
            np.dot(K, At_n, m.reshape(n_fibers, n_rows))
            if weighted:
                w = w_buffer[:cells]
                weigh(weights_handle, chosen, mode, 0, w.reshape(n_fibers, n_rows))
                hide_missing(x, w)
            if want_value and weighted:
                cell_values(x, m, loss_p, d)
                apply_weights(d, w_buffer[:cells])
                values[group] += sum_in_order(d)
            elif want_value:
                values[group] += value(x, m, loss_p)
            derivative(x, m, loss_p, d)
            if weighted:
                apply_weights(d, w_buffer[:cells])
            np.dot(D.T, K, partial)
            G[group] += partial
            convex(x, m, loss_p, d)
            if weighted:
                apply_weights(d, w_buffer[:cells])
            np.dot(D.T, K, partial)
            C[group] += partial


@cache
def compiled_split_pass(dtype: str, parallel: bool) -> Any:
    kinds = precision(dtype)
    entrywise = types.FunctionType(kinds.entrywise)
    sums = types.Array(types.float64, 3, "C")
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
        entrywise,
        entrywise,
        entrywise,
        kinds.params,
        types.boolean,
        kinds.matrix,
        types.float64[::1],
        sums,
        sums,
    )
    name = f"split_pass.{dtype}.{'parallel' if parallel else 'serial'}"
    return compile_kernel(in_precision(split_pass, kinds.dtype), signature, name, parallel=parallel)
