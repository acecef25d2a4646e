"""The cost of every row of a factor, with its gradient and its Hessian, over a block of cells.

A row is worked on by one thread, a few cells at a time, so that all that is computed of them stays
in the cache, and sums are the same whatever the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import prange, types

from smartcpd.kernels.blocks import precision
from smartcpd.kernels.compiling import compile_kernel
from smartcpd.kernels.weights import apply_weights, hide_missing, sum_in_order

CELLS_AT_ONCE = 512


def row_terms(x, w, values, slopes, bends, loss_p, want_derivatives, A, Ht, F, G, B):
    """Add to F[i] the sum of the loss over row i of ``x``, to G[i] its gradient, and to the upper
    triangle of B[i] its Hessian.

    The model values of a row are A[i] Ht; ``w`` are weights, or empty. ``x`` is changed where a
    weight is 0.
    """
    n_rows, n_cells = x.shape
    rank = A.shape[1]
    weighted = w.size > 0
    for i in prange(n_rows):
        m_buffer = np.empty(CELLS_AT_ONCE)
        d_buffer = np.empty(CELLS_AT_ONCE)
        bent = np.empty(CELLS_AT_ONCE)
        for start in range(0, n_cells, CELLS_AT_ONCE):
            n = min(CELLS_AT_ONCE, n_cells - start)
            here = x[i, start : start + n]
            m, d = m_buffer[:n], d_buffer[:n]
            m[:] = 0.0
            for r in range(rank):
                a, h = A[i, r], Ht[r, start : start + n]
                for c in range(n):
                    m[c] += a * h[c]
            if weighted:
                hide_missing(here, w[i, start : start + n])
            values(here, m, loss_p, d)
            if weighted:
                apply_weights(d, w[i, start : start + n])
            F[i] += sum_in_order(d)
            if not want_derivatives:
                continue
            slopes(here, m, loss_p, d)
            if weighted:
                apply_weights(d, w[i, start : start + n])
            for r in range(rank):
                h, total = Ht[r, start : start + n], 0.0
                for c in range(n):
                    total += d[c] * h[c]
                G[i, r] += total
            bends(here, m, loss_p, d)
            if weighted:
                apply_weights(d, w[i, start : start + n])
            for r in range(rank):
                h = Ht[r, start : start + n]
                for c in range(n):
                    bent[c] = d[c] * h[c]
                for s in range(r, rank):
                    g, total = Ht[s, start : start + n], 0.0
                    for c in range(n):
                        total += bent[c] * g[c]
                    B[i, r, s] += total


@cache
def compiled_row_terms(parallel: bool) -> Any:
    kinds = precision("float64")
    entrywise = types.FunctionType(kinds.entrywise)
    matrix = types.float64[:, ::1]
    signature = types.void(
        matrix,
        matrix,
        entrywise,
        entrywise,
        entrywise,
        kinds.params,
        types.boolean,
        matrix,
        matrix,
        types.float64[::1],
        matrix,
        types.Array(types.float64, 3, "C"),
    )
    name = f"row_terms.{'parallel' if parallel else 'serial'}"
    return compile_kernel(row_terms, signature, name, parallel=parallel)
