"""The gradient of one mode and its convex part, over all fibers of that mode.

Multiplicative updates need two sums of derivatives times the products K of the rows of the other
factors. With fibers along the mode itself each of them is one matrix product, and the model values
that both begin with are computed once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.copying import add_matrix
from smartcpd._kernels.passes import read_fibers
from smartcpd._kernels.weights import apply_weights, weighted_sum


def split_pass(
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
    convex: kinds.Entrywise,
    loss_p: kinds.Params,
    want_value: kinds.Flag,
    A: kinds.Matrix,
    values: kinds.Doubles,
    G: kinds.DoubleStack,
    C: kinds.DoubleStack,
):
    """Add group k's loss to ``values[k]``, its gradient to ``G[k]``, the convex part's to ``C[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    Weights are those of `passes`.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    At_n = np.ascontiguousarray(A[offsets[mode] : offsets[mode + 1]].T)
    n_rows = At_n.shape[1]
    for group in range(n_groups):
        x_buffer = np.empty(batch * n_rows, A.dtype)
        m_buffer = np.empty(batch * n_rows, A.dtype)
        d_buffer = np.empty(batch * n_rows, A.dtype)
        w_buffer = np.empty(batch * n_rows if weights_handle.size > 0 else 0, A.dtype)
        K_buffer = np.empty((batch, rank), A.dtype)
        partial = np.empty((n_rows, rank), A.dtype)
        for start in range(0, group_size, batch):
            n = min(batch, group_size - start)
            chosen = fibers[group, start : start + n]
            x, m, d = x_buffer[: n * n_rows], m_buffer[: n * n_rows], d_buffer[: n * n_rows]
            w, K = w_buffer[: n * n_rows], K_buffer[:n]
            read_fibers(
                lines, handle, weigh, weights_handle, offsets, mode, chosen, A, At_n, K, x, m, w
            )
            if want_value:
                values[group] += weighted_sum(value, cell_values, x, m, loss_p, w, d)
            for terms, sums in ((derivative, G), (convex, C)):
                terms(x, m, loss_p, d)
                apply_weights(d, w)
                np.dot(d.reshape(n, n_rows).T, K, partial)
                add_matrix(partial, sums[group])


@cache
def compiled_split_pass(dtype: str) -> Any:
    return kinds.compile_annotated(split_pass, dtype=dtype)
