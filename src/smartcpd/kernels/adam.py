"""Iterations of Adam on sampled cells, many in one call.

An iteration reads a few thousand cells and updates every factor, too little work to be worth a call
from Python each. Many cells are split in two groups with gradients of their own, which are added in
order: the result does not depend on whether two threads share them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import prange, types

from smartcpd.kernels.blocks import precision
from smartcpd.kernels.compiling import FASTMATH, compile_kernel, in_precision
from smartcpd.kernels.events import ROWS
from smartcpd.kernels.lanes import LANES, fill, load, store, total
from smartcpd.kernels.weights import apply_weights

CHUNK = 256
"""Cells worked on at a time."""
WORTH_GROUPS = 2048
"""Cells of an iteration from which on there are two groups."""


def make_cut(order: int, mode: int = 0) -> Any:
    """Some cells' rows, as a tuple of one array a mode."""
    if mode == order:
        return numba.njit(lambda rows, start, stop: ())
    others = make_cut(order, mode + 1)
    return numba.njit(
        lambda rows, start, stop: (rows[mode, start:stop], *others(rows, start, stop))
    )


def make_place(order: int, mode: int = 0) -> Any:
    """One cell's rows, as a tuple: numbers that no store seems to change."""
    if mode == order:
        return numba.njit(lambda columns, b: ())
    others = make_place(order, mode + 1)
    return numba.njit(lambda columns, b: (columns[mode][b], *others(columns, b)))


def make_product(order: int, mode: int = 0) -> Any:
    """The product of a cell's rows, eight columns of it."""
    if mode == order - 1:
        return numba.njit(lambda A, at, r: load(A, at[mode], r))
    others = make_product(order, mode + 1)
    return numba.njit(lambda A, at, r: load(A, at[mode], r) * others(A, at, r))


def make_products(order: int, mode: int = 0) -> Any:
    """Add to each mode's row in G the product of the other modes' rows.

    ``before`` is the product of the modes before this one; that of those behind is returned.
    """
    if mode == order:
        return numba.njit(lambda A, at, r, before, G: fill(1.0))
    go_on = make_products(order, mode + 1)

    @numba.njit(error_model="numpy", fastmath=FASTMATH)
    def add_products(A, at, r, before, G):
        a = load(A, at[mode], r)
        behind = go_on(A, at, r, before * a, G)
        store(G, at[mode], r, load(G, at[mode], r) + before * behind)
        return a * behind

    return add_products


def make_iterations(order: int, width: int) -> Any:
    """The loop for factors of one padded width: what it does to a cell is unrolled."""

    cut = make_cut(order)
    place = make_place(order)
    product = make_product(order)
    add_products = make_products(order)

    @numba.njit(error_model="numpy", fastmath=FASTMATH)
    def model_values(A, columns, m):
        for b in range(m.size):
            at = place(columns, b)
            terms = product(A, at, 0)
            for r in range(LANES, width, LANES):
                terms = terms + product(A, at, r)
            m[b] = total(terms)

    @numba.njit(error_model="numpy", fastmath=FASTMATH)
    def add_gradient(A, columns, d, G):
        for b in range(d.size):
            at = place(columns, b)
            slope = fill(d[b])
            for r in range(0, width, LANES):
                add_products(A, at, r, slope, G)

    @numba.njit(error_model="numpy", fastmath=FASTMATH)
    def update(G, rule, clock, low, high, A, first, second):
        rate, beta_1, beta_2, epsilon = rule[0], rule[1], rule[2], rule[3]
        scale_1 = 1.0 / (1.0 - beta_1**clock)
        scale_2 = 1.0 / (1.0 - beta_2**clock)
        for i in range(A.size):
            first[i] = beta_1 * first[i] + (1.0 - beta_1) * G[i]
            second[i] = beta_2 * second[i] + (1.0 - beta_2) * G[i] * G[i]
            a = A[i] - rate * scale_1 * first[i] / (np.sqrt(second[i] * scale_2) + epsilon)
            # Comparisons that let NaN pass, to be noticed.
            a = low[i] if a < low[i] else a
            A[i] = high[i] if a > high[i] else a

    def iterations(
        rows,
        x,
        weights,
        own_weights,
        derivative,
        loss_p,
        rule,
        clocks,
        low,
        high,
        A,
        first,
        second,
        G,
    ):
        """One iteration for each of ``clocks``, what the bias correction takes for the time.

        Each reads as many cells as there are weights; what those hold is multiplied by
        ``own_weights``, one a cell that was drawn, or none. ``rule`` is (rate, beta_1, beta_2,
        epsilon). All matrices have padded rows, and bounds of zero keep the padding of A at zero; G
        is scratch, as many times the rows of A as there are groups.
        """
        n_samples = weights.size
        n_rows = A.shape[0]
        n_groups = G.shape[0] // n_rows
        share = -(-n_samples // n_groups)
        for t in range(clocks.size):
            for group in prange(n_groups):
                m = np.empty(CHUNK)
                d = np.empty(CHUNK)
                G_own = G[group * n_rows : (group + 1) * n_rows]
                G_own[:] = 0.0
                last = min((group + 1) * share, n_samples)
                for start in range(group * share, last, CHUNK):
                    n = min(CHUNK, last - start)
                    at = t * n_samples + start
                    columns = cut(rows, at, at + n)
                    model_values(A, columns, m[:n])
                    derivative(x[at : at + n], m[:n], loss_p, d[:n])
                    for b in range(n):
                        d[b] *= weights[start + b]
                    if own_weights.size > 0:
                        apply_weights(d[:n], own_weights[at : at + n])
                    add_gradient(A, columns, d[:n], G_own)
            for group in range(1, n_groups):
                G[:n_rows] += G[group * n_rows : (group + 1) * n_rows]
            # Flat, for loops long enough to be vectorised.
            update(
                G[:n_rows].reshape(-1),
                rule,
                clocks[t],
                low.reshape(-1),
                high.reshape(-1),
                A.reshape(-1),
                first.reshape(-1),
                second.reshape(-1),
            )

    return iterations


@cache
def compiled_iterations(order: int, width: int, parallel: bool) -> Any:
    kinds = precision("float64")
    signature = types.void(
        ROWS,
        kinds.vector,
        kinds.vector,
        kinds.vector,
        types.FunctionType(kinds.entrywise),
        kinds.params,
        types.UniTuple(types.float64, 4),
        kinds.vector,
        *[kinds.matrix] * 6,
    )
    function = in_precision(make_iterations(order, width), np.float64)
    name = f"adam.{order}.{width}.{'parallel' if parallel else 'serial'}"
    return compile_kernel(function, signature, name, parallel=parallel)
