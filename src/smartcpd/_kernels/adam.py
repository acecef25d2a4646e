"""Iterations of Adam on sampled cells, many in one call.

An iteration reads a few thousand cells and updates every factor, too little work to be worth a call
from Python each. Many cells are split in two groups with gradients of their own, which are added in
order: the result does not depend on whether two threads share them. Gradients are in float32,
whose rounding is nothing next to the noise of sampling; factors and moments are in float64.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import prange

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import exact_subroutine, subroutine
from smartcpd._kernels.copying import add_matrix, copy_matrix
from smartcpd._kernels.elementary import root
from smartcpd._kernels.lanes import LANES, fill, load, store, total
from smartcpd._kernels.weights import apply_weights

CHUNK = 256
"""Cells worked on at a time."""
STRIPE = 4
"""Lanes of a row worked on at a time; twice as many fit into registers."""
ZERO, ONE = np.float32(0), np.float32(1)
FIRST, NEXT = np.uint64(0), np.uint64(1)
"""The first two indices, unsigned so that compiled code need not check whether an index counts from
the end.
"""
WORTH_GROUPS = 1 << 15
"""Cells of an iteration from which on they form two groups: with fewer, threads would wait for each
other as long as they work, and much longer where other programs want the processor.
"""


def make_cut(order: int, place: int = 0) -> Any:
    """Make the function that returns the rows of some cells as a tuple of one array a mode, in the
    order of ``modes``.
    """
    if place == order:
        return exact_subroutine(lambda rows, modes, start, stop: ())
    others = make_cut(order, place + 1)
    return exact_subroutine(
        lambda rows, modes, start, stop: (
            rows[modes[place], start:stop],
            *others(rows, modes, start, stop),
        )
    )


def make_place(order: int, mode: int = 1) -> Any:
    """Make the function that returns the rows of one cell in all modes but the first, as a tuple:
    the compiler then sees that no store changes them.
    """
    if mode == order:
        return exact_subroutine(lambda columns, b: ())
    others = make_place(order, mode + 1)
    return exact_subroutine(lambda columns, b: (columns[mode][b], *others(columns, b)))


def make_product(n_rows: int, k: int = 0) -> Any:
    """Make the function that multiplies some rows, eight columns at a time."""
    if k == n_rows - 1:
        return exact_subroutine(lambda A, at, r: load(A, at[k], r))
    others = make_product(n_rows, k + 1)
    return exact_subroutine(lambda A, at, r: load(A, at[k], r) * others(A, at, r))


def make_products(n_rows: int, k: int = 0) -> Any:
    """Make the function that adds to each row of G the product of the other rows of A and of
    ``before``.

    ``before`` is passed on with the rows before this one; the product of those behind is returned.
    """
    if k == n_rows:
        return exact_subroutine(lambda A, at, r, before, G: fill(ONE))
    go_on = make_products(n_rows, k + 1)

    @subroutine
    def add_products(A, at, r, before, G):
        a = load(A, at[k], r)
        behind = go_on(A, at, r, before * a, G)
        store(G, at[k], r, load(G, at[k], r) + before * behind)
        return a * behind

    return add_products


def make_row(n_lanes: int, k: int = 0) -> tuple[Any, Any, Any]:
    """Make three functions: load a stripe of a row as a tuple of lanes, make one of zeros, add one
    to G.
    """
    if k == n_lanes:
        nothing = exact_subroutine(lambda G, i, r, sums: None)
        return exact_subroutine(lambda A, i, r: ()), exact_subroutine(lambda: ()), nothing
    load_on, zeros_on, add_on = make_row(n_lanes, k + 1)

    @subroutine
    def add(G, i, r, sums):
        store(G, i, r + k * LANES, load(G, i, r + k * LANES) + sums[k])
        add_on(G, i, r, sums)

    return (
        exact_subroutine(lambda A, i, r: (load(A, i, r + k * LANES), *load_on(A, i, r))),
        exact_subroutine(lambda: (fill(ZERO), *zeros_on())),
        add,
    )


def make_terms(product: Any, n_lanes: int, k: int = 0) -> Any:
    """Make the function that adds the lanes of a stripe of a cell's product to each other."""
    if k == n_lanes - 1:
        return exact_subroutine(lambda own, A, at, r: own[k] * product(A, at, r + k * LANES))
    go_on = make_terms(product, n_lanes, k + 1)
    return exact_subroutine(
        lambda own, A, at, r: own[k] * product(A, at, r + k * LANES) + go_on(own, A, at, r)
    )


def make_slopes(add_products: Any, n_lanes: int, k: int = 0) -> Any:
    """Make the function that adds a cell's part of the gradient to the rows of G, that of the first
    mode to ``sums``.
    """
    if k == n_lanes:
        return exact_subroutine(lambda own, A, at, r, slope, sums, G: ())
    go_on = make_slopes(add_products, n_lanes, k + 1)

    @subroutine
    def add_slopes(own, A, at, r, slope, sums, G):
        behind = add_products(A, at, r + k * LANES, slope * own[k], G)
        return (sums[k] + slope * behind, *go_on(own, A, at, r, slope, sums, G))

    return add_slopes


def make_stripe(order: int, n_lanes: int) -> tuple[Any, Any]:
    """Make ``add_values`` and ``add_gradient`` for ``n_lanes`` times eight columns from r on.

    Cells that follow each other and share their row in the first mode have it read once, and its
    gradient written once.
    """
    place = make_place(order)
    load_row, zeros, add_row = make_row(n_lanes)
    terms = make_terms(make_product(order - 1), n_lanes)
    add_slopes = make_slopes(make_products(order - 1), n_lanes)

    @subroutine
    def add_values(A, columns, r, m):
        lead = columns[0]
        b, n = FIRST, np.uint64(m.size)
        while b < n:
            i = lead[b]
            own = load_row(A, i, r)
            while b < n and lead[b] == i:
                m[b] += total(terms(own, A, place(columns, b), r))
                b += NEXT

    @subroutine
    def add_gradient(A, columns, r, d, G):
        lead = columns[0]
        b, n = FIRST, np.uint64(d.size)
        while b < n:
            i = lead[b]
            own, sums = load_row(A, i, r), zeros()
            while b < n and lead[b] == i:
                sums = add_slopes(own, A, place(columns, b), r, fill(d[b]), sums, G)
                b += NEXT
            add_row(G, i, r, sums)

    return add_values, add_gradient


def make_iterations(order: int, width: int) -> Any:
    """Make the loop for factors of one padded width, with the work on a cell unrolled."""

    cut = make_cut(order)
    stripe = STRIPE * LANES
    whole = width // stripe * stripe
    # Stripes of a kind that does not occur are never run; compiling them would take as long.
    last = make_stripe(order, (width - whole) // LANES or STRIPE)
    add_values, add_gradient = make_stripe(order, STRIPE) if 0 < whole < width else last
    add_last_values, add_last_gradient = last

    @subroutine
    def model_values(A, columns, m):
        m[:] = ZERO
        for r in range(0, whole, stripe):
            add_values(A, columns, r, m)
        if whole < width:
            add_last_values(A, columns, whole, m)

    @subroutine
    def gradient(A, columns, d, G):
        for r in range(0, whole, stripe):
            add_gradient(A, columns, r, d, G)
        if whole < width:
            add_last_gradient(A, columns, whole, d, G)

    @subroutine
    def update(G, rule, clock, low, high, A, first, second, A_short):
        rate, beta_1, beta_2, epsilon = rule[0], rule[1], rule[2], rule[3]
        pace = rate / (1.0 - beta_1**clock)
        scale = 1.0 / (1.0 - beta_2**clock)
        for i in range(A.size):
            g = np.float64(G[i])
            first[i] = beta_1 * first[i] + (1.0 - beta_1) * g
            second[i] = beta_2 * second[i] + (1.0 - beta_2) * g * g
            a = A[i] - pace * first[i] / (root(second[i] * scale) + epsilon)
            # These comparisons let NaN pass, so that divergence is noticed.
            a = low[i] if a < low[i] else a
            a = high[i] if a > high[i] else a
            A[i] = a
            A_short[i] = a

    def iterations(
        rows: kinds.Rows,
        modes: kinds.Integers,
        x: kinds.Doubles,
        weights: kinds.Vector,
        own_weights: kinds.Doubles,
        derivative: kinds.Entrywise,
        loss_p: kinds.Params,
        rule: tuple[kinds.Double, kinds.Double, kinds.Double, kinds.Double],
        clocks: kinds.Doubles,
        low: kinds.DoubleMatrix,
        high: kinds.DoubleMatrix,
        A: kinds.DoubleMatrix,
        first: kinds.DoubleMatrix,
        second: kinds.DoubleMatrix,
        G: kinds.Matrix,
    ):
        """Make one iteration for each of ``clocks``, the times that the bias correction uses.

        An iteration reads as many cells as there are ``weights``. Their terms are multiplied by
        ``own_weights``, one for each cell that was drawn, or none. ``modes`` are in any order, best
        with that first in which cells often share their row with the next. ``rule`` is (rate,
        beta_1, beta_2, epsilon). All matrices have padded rows, and bounds of zero keep the padding
        of A at zero; G is scratch: first a copy of A, then a gradient for every group.
        """
        n_samples = weights.size
        n_rows = A.shape[0]
        n_groups = G.shape[0] // n_rows - 1
        share = -(-n_samples // n_groups)
        A_short = G[:n_rows]
        copy_matrix(A, A_short)
        for t in range(clocks.size):
            for group in prange(n_groups):
                m = np.empty(CHUNK, np.float32)
                d = np.empty(CHUNK, np.float32)
                x_short = np.empty(CHUNK, np.float32)
                G_own = G[(group + 1) * n_rows : (group + 2) * n_rows]
                G_own[:] = ZERO
                last = min((group + 1) * share, n_samples)
                for start in range(group * share, last, CHUNK):
                    n = min(CHUNK, last - start)
                    at = t * n_samples + start
                    columns = cut(rows, modes, at, at + n)
                    model_values(A_short, columns, m[:n])
                    for b in range(n):
                        x_short[b] = x[at + b]
                    derivative(x_short[:n], m[:n], loss_p, d[:n])
                    for b in range(n):
                        d[b] *= weights[start + b]
                    apply_weights(d[:n], own_weights[at : at + n])
                    gradient(A_short, columns, d[:n], G_own)
            G_sum = G[n_rows : 2 * n_rows]
            for group in range(1, n_groups):
                add_matrix(G[(group + 1) * n_rows : (group + 2) * n_rows], G_sum)
            # Flat views make loops long enough to be vectorised.
            update(
                G_sum.reshape(-1),
                rule,
                clocks[t],
                low.reshape(-1),
                high.reshape(-1),
                A.reshape(-1),
                first.reshape(-1),
                second.reshape(-1),
                A_short.reshape(-1),
            )

    return iterations


@cache
def compiled_iterations(order: int, width: int, parallel: bool) -> Any:
    loop = make_iterations(order, width)
    return kinds.compile_annotated(loop, order, width, dtype="float32", parallel=parallel)
