"""Products with the Gauss-Newton matrix J' W J, over many fibers of one mode.

J is the derivative of the model by all factors, W the curvature of the loss of each cell. For a
direction V the model of a fiber, m = K A', changes by dm = K V' + K' A', where K' is how the
product K of the other factors' rows changes; J' takes D = W dm back to the factors just as it takes
derivatives to a gradient in `passes`. There, too, is why the fibers come in groups.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import prange, types

from smartcpd._kernels.blocks import precision
from smartcpd._kernels.compiling import FASTMATH, compile_kernel, in_precision
from smartcpd._kernels.copying import add_matrix
from smartcpd._kernels.passes import fill_products, scatter
from smartcpd._kernels.weights import apply_weights, hide_missing


@numba.njit(error_model="numpy", fastmath=FASTMATH)
def fill_tangents(A, V, offsets, fibers, mode, T):
    """T[f] = the derivative along V of what `fill_products` gives fiber f: the product rule."""
    n_fibers, rank = T.shape
    product = np.empty(rank, A.dtype)
    for f in range(n_fibers):
        product[:] = 1.0
        T[f] = 0.0
        for k in range(fibers.shape[1]):
            if k != mode:
                a, v = A[offsets[k] + fibers[f, k]], V[offsets[k] + fibers[f, k]]
                for r in range(rank):
                    T[f, r] = T[f, r] * a[r] + product[r] * v[r]
                    product[r] *= a[r]


def curvature_pass(
    lines,
    handle,
    offsets,
    mode,
    fibers,
    batch,
    weigh,
    weights_handle,
    curvature,
    loss_p,
    A,
    V,
    G,
):
    """Add J' W J V over group k's fibers to ``G[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    Weights are those of `passes`.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    first = offsets[mode]
    n_rows = offsets[mode + 1] - first
    A_n = A[first : first + n_rows]
    At_n = np.ascontiguousarray(A_n.T)
    Vt_n = np.ascontiguousarray(V[first : first + n_rows].T)
    weighted = weights_handle.size > 0
    for group in prange(n_groups):
        x_buffer = np.empty(batch * n_rows)
        m_buffer = np.empty(batch * n_rows)
        d_buffer = np.empty(batch * n_rows)
        w_buffer = np.empty(batch * n_rows)
        K_buffer = np.empty(batch * rank)
        T_buffer = np.empty(batch * rank)
        partial = np.empty((n_rows, rank))
        for start in range(0, group_size, batch):
            stop = min(start + batch, group_size)
            n_fibers = stop - start
            cells = n_fibers * n_rows
            chosen = fibers[group, start:stop]
            x, m, d, w = x_buffer[:cells], m_buffer[:cells], d_buffer[:cells], w_buffer[:cells]
            K = K_buffer[: n_fibers * rank].reshape(n_fibers, rank)
            T = T_buffer[: n_fibers * rank].reshape(n_fibers, rank)
            fill_products(A, offsets, chosen, mode, K)
            fill_tangents(A, V, offsets, chosen, mode, T)
            lines(handle, chosen, mode, 0, x.reshape(n_fibers, n_rows))
            D = d.reshape(n_fibers, n_rows)
            np.dot(K, At_n, m.reshape(n_fibers, n_rows))
            np.dot(K, Vt_n, D)
            np.dot(T, At_n, w.reshape(n_fibers, n_rows))
            d += w
            if weighted:
                weigh(weights_handle, chosen, mode, 0, w.reshape(n_fibers, n_rows))
                hide_missing(x, w)
                apply_weights(d, w)
            curvature(x, m, loss_p, w)
            d *= w
            np.dot(D.T, K, partial)
            add_matrix(partial, G[group, first : first + n_rows])
            np.dot(D, A_n, T)
            scatter(A, offsets, chosen, mode, T, G[group])


@cache
def compiled_curvature_pass(parallel: bool) -> Any:
    kinds = precision("float64")
    signature = types.void(
        types.FunctionType(kinds.gather),
        types.int64[::1],
        types.int64[::1],
        types.intp,
        types.Array(types.int64, 3, "C"),
        types.intp,
        types.FunctionType(kinds.gather),
        types.int64[::1],
        types.FunctionType(kinds.entrywise),
        kinds.params,
        kinds.matrix,
        kinds.matrix,
        types.Array(types.float64, 3, "C"),
    )
    name = f"curvature_pass.{'parallel' if parallel else 'serial'}"
    function = in_precision(curvature_pass, np.float64)
    return compile_kernel(function, signature, name, parallel=parallel)
