"""The cost of every row of a factor, with its gradient and its Hessian, over a block of cells.

A row is worked on by one thread, a few cells at a time, so that all that is computed of them stays
in the cache, and sums are the same whatever the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.weights import apply_weights, hide_missing, sum_in_order

CELLS_AT_ONCE = 256


@subroutine
def combine(a, Ht, start, m):
    """m[c] = the sum of a[r] Ht[r, start + c], four rows at a time: one trip to memory for all."""
    n, rank = m.size, a.size
    m[:] = 0.0
    whole = rank - rank % 4
    for r in range(0, whole, 4):
        a0, a1, a2, a3 = a[r], a[r + 1], a[r + 2], a[r + 3]
        h0, h1 = Ht[r, start : start + n], Ht[r + 1, start : start + n]
        h2, h3 = Ht[r + 2, start : start + n], Ht[r + 3, start : start + n]
        for c in range(n):
            m[c] += (a0 * h0[c] + a1 * h1[c]) + (a2 * h2[c] + a3 * h3[c])
    for r in range(whole, rank):
        h = Ht[r, start : start + n]
        for c in range(n):
            m[c] += a[r] * h[c]


@subroutine
def add_products(d, Ht, start, first, out):
    """Add to out[r] the product of d and Ht[r, start:], from row ``first`` on, four at a time."""
    n, rank = d.size, out.size
    whole = rank - (rank - first) % 4
    for r in range(first, whole, 4):
        h0, h1 = Ht[r, start : start + n], Ht[r + 1, start : start + n]
        h2, h3 = Ht[r + 2, start : start + n], Ht[r + 3, start : start + n]
        t0 = t1 = t2 = t3 = 0.0
        for c in range(n):
            t0 += d[c] * h0[c]
            t1 += d[c] * h1[c]
            t2 += d[c] * h2[c]
            t3 += d[c] * h3[c]
        out[r] += t0
        out[r + 1] += t1
        out[r + 2] += t2
        out[r + 3] += t3
    for r in range(whole, rank):
        h, total = Ht[r, start : start + n], 0.0
        for c in range(n):
            total += d[c] * h[c]
        out[r] += total


@subroutine
def add_outer(d, Ht, start, bent, out):
    """Add to the upper triangle of ``out`` the sum of d[c] h h' with h = Ht[:, start + c], two rows
    and four columns at a time; ``bent`` is overwritten."""
    n, rank = d.size, len(out)
    for r in range(0, rank - 1, 2):
        h0, h1 = Ht[r, start : start + n], Ht[r + 1, start : start + n]
        b0, b1 = bent[0, :n], bent[1, :n]
        for c in range(n):
            b0[c] = d[c] * h0[c]
            b1[c] = d[c] * h1[c]
        whole = rank - (rank - r) % 4
        for s in range(r, whole, 4):
            g0, g1 = Ht[s, start : start + n], Ht[s + 1, start : start + n]
            g2, g3 = Ht[s + 2, start : start + n], Ht[s + 3, start : start + n]
            t00 = t01 = t02 = t03 = t10 = t11 = t12 = t13 = 0.0
            for c in range(n):
                t00 += b0[c] * g0[c]
                t01 += b0[c] * g1[c]
                t02 += b0[c] * g2[c]
                t03 += b0[c] * g3[c]
                t10 += b1[c] * g0[c]
                t11 += b1[c] * g1[c]
                t12 += b1[c] * g2[c]
                t13 += b1[c] * g3[c]
            out[r, s] += t00
            out[r, s + 1] += t01
            out[r, s + 2] += t02
            out[r, s + 3] += t03
            out[r + 1, s] += t10
            out[r + 1, s + 1] += t11
            out[r + 1, s + 2] += t12
            out[r + 1, s + 3] += t13
        if whole < rank:
            add_products(b0, Ht, start, whole, out[r])
            add_products(b1, Ht, start, whole, out[r + 1])
    if rank % 2:
        h = Ht[rank - 1, start : start + n]
        for c in range(n):
            bent[0, c] = d[c] * h[c]
        add_products(bent[0, :n], Ht, start, rank - 1, out[rank - 1])


def row_terms(
    x: kinds.Matrix,
    w: kinds.Matrix,
    values: kinds.Entrywise,
    slopes: kinds.Entrywise,
    bends: kinds.Entrywise,
    loss_p: kinds.Params,
    want_derivatives: kinds.Flag,
    A: kinds.Matrix,
    Ht: kinds.Matrix,
    F: kinds.Vector,
    G: kinds.Matrix,
    B: kinds.Stack,
):
    """Add to F[i] the sum of the loss over row i of ``x``, to G[i] its gradient, and to the upper
    triangle of B[i] its Hessian.

    The model values of a row are A[i] Ht; ``w`` are weights, or empty. ``x`` is changed where a
    weight is 0.
    """
    n_rows, n_cells = x.shape
    weighted = w.size > 0
    for i in range(n_rows):
        m_buffer = np.empty(CELLS_AT_ONCE)
        d_buffer = np.empty(CELLS_AT_ONCE)
        bent = np.empty((2, CELLS_AT_ONCE))
        for start in range(0, n_cells, CELLS_AT_ONCE):
            n = min(CELLS_AT_ONCE, n_cells - start)
            here = x[i, start : start + n]
            m, d = m_buffer[:n], d_buffer[:n]
            combine(A[i], Ht, start, m)
            w_here = w[i, start : start + n] if weighted else d_buffer[:0]
            hide_missing(here, w_here)
            values(here, m, loss_p, d)
            apply_weights(d, w_here)
            F[i] += sum_in_order(d)
            if not want_derivatives:
                continue
            slopes(here, m, loss_p, d)
            apply_weights(d, w_here)
            add_products(d, Ht, start, 0, G[i])
            bends(here, m, loss_p, d)
            apply_weights(d, w_here)
            add_outer(d, Ht, start, bent, B[i])


@cache
def compiled_row_terms() -> Any:
    return kinds.compile_annotated(row_terms)
