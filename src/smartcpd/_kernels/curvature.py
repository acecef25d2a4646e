"""Products with the Gauss-Newton matrix J' W J, over many fibers of one mode.

J is the derivative of the model by all factors, W the curvature of the loss of each cell. For a
direction V the model of a fiber, m = K A', changes by dm = K V' + K' A', where K' is how the
product K of the other factors' rows changes; J' takes D = W dm back to the factors just as it takes
derivatives to a gradient in `passes`. There, too, is why the fibers come in groups.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.passes import add_gradient, read_fibers
from smartcpd._kernels.weights import apply_weights


@subroutine
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
    lines: kinds.Gather,
    handle: kinds.Integers,
    offsets: kinds.Integers,
    mode: kinds.Integer,
    fibers: kinds.IntegerStack,
    batch: kinds.Integer,
    weigh: kinds.Gather,
    weights_handle: kinds.Integers,
    curvature: kinds.Entrywise,
    loss_p: kinds.Params,
    A: kinds.Matrix,
    V: kinds.Matrix,
    G: kinds.Stack,
):
    """Add J' W J V over group k's fibers to ``G[k]``.

    ``fibers`` is (groups, fibers of a group, order); ``batch`` of them are read at a time.
    Weights are those of `passes`.
    """
    n_groups, group_size, _ = fibers.shape
    rank = A.shape[1]
    A_n = A[offsets[mode] : offsets[mode + 1]]
    At_n = np.ascontiguousarray(A_n.T)
    Vt_n = np.ascontiguousarray(V[offsets[mode] : offsets[mode + 1]].T)
    n_rows = A_n.shape[0]
    for group in range(n_groups):
        x_buffer = np.empty(batch * n_rows)
        m_buffer = np.empty(batch * n_rows)
        D_buffer = np.empty((batch, n_rows))
        C_buffer = np.empty((batch, n_rows))
        w_buffer = np.empty(batch * n_rows if weights_handle.size > 0 else 0)
        K_buffer = np.empty((batch, rank))
        T_buffer = np.empty((batch, rank))
        partial = np.empty((n_rows, rank))
        for start in range(0, group_size, batch):
            n = min(batch, group_size - start)
            chosen = fibers[group, start : start + n]
            x, m, w = x_buffer[: n * n_rows], m_buffer[: n * n_rows], w_buffer[: n * n_rows]
            D, C, K, T = D_buffer[:n], C_buffer[:n], K_buffer[:n], T_buffer[:n]
            read_fibers(
                lines, handle, weigh, weights_handle, offsets, mode, chosen, A, At_n, K, x, m, w
            )
            fill_tangents(A, V, offsets, chosen, mode, T)
            np.dot(K, Vt_n, D)
            np.dot(T, At_n, C)
            D += C
            apply_weights(D.reshape(-1), w)
            curvature(x, m, loss_p, C.reshape(-1))
            D *= C
            add_gradient(A, A_n, offsets, mode, chosen, D, K, T, partial, G[group])


@cache
def compiled_curvature_pass() -> Any:
    return kinds.compile_annotated(curvature_pass)
