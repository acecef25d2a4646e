"""The gradient of sparse data in an iteration: its events, and a straight line for its zeros."""

from __future__ import annotations

import numpy as np

from smartcpd._kernels.compiling import exact_subroutine
from smartcpd._kernels.weights import weighted_terms


@exact_subroutine
def event_terms(A, offsets, rows, mode, H, owner):
    """Compute for each event the product of its rows of all factors but one, and its row in that
    one.
    """
    n_events, rank = H.shape
    first = 1 if mode == 0 else 0
    for e in range(n_events):
        for r in range(rank):
            H[e, r] = A[rows[e, first], r]
        for k in range(first + 1, rows.shape[1]):
            if k != mode:
                for r in range(rank):
                    H[e, r] *= A[rows[e, k], r]
        owner[e] = rows[e, mode] - offsets[mode]


@exact_subroutine
def by_tile(owner, tile_rows, starts, order):
    """List the events tile after tile: those of tile k at order[starts[k]:starts[k + 1]]."""
    starts[:] = 0
    for e in range(owner.size):
        starts[owner[e] // tile_rows + 1] += 1
    for k in range(1, starts.size):
        starts[k] += starts[k - 1]
    for e in range(owner.size):
        tile = owner[e] // tile_rows
        order[starts[tile]] = e
        starts[tile] += 1
    for k in range(starts.size - 1, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


@exact_subroutine
def add_events(surplus, loss_p, weight, own_weights, behind, chosen, owner, x, H, A_n, work, at, G):
    """Add the gradient of the chosen events, those of one tile, to G.

    ``work`` has room for five numbers an event; this tile's begin at ``at``. Where events have
    weights of their own, ``surplus`` is the derivative, and ``behind`` says whether that of a zero
    is subtracted.
    """
    n_events = chosen.size
    rank = H.shape[1]
    x_here = work[0, at : at + n_events]
    m = work[1, at : at + n_events]
    d = work[2, at : at + n_events]
    for j in range(n_events):
        e = chosen[j]
        total = A_n[owner[e], 0] * H[e, 0]
        for r in range(1, rank):
            total += A_n[owner[e], r] * H[e, r]
        m[j] = total
        x_here[j] = x[e]
    w = work[3, at : at + n_events if own_weights.size > 0 else at]
    for j in range(w.size):
        w[j] = own_weights[chosen[j]]
    weighted_terms(surplus, x_here, m, loss_p, w, behind, work[4, at : at + n_events], d)
    for j in range(n_events):
        e = chosen[j]
        c = weight * d[j]
        for r in range(rank):
            G[owner[e], r] += c * H[e, r]


@exact_subroutine
def add_line(b0, b1, scale, sums, grams, mode, A_tile, G):
    """Add the gradient of the sum over all cells whose derivative is b0 + b1 m."""
    rank = G.shape[1]
    order = sums.shape[0]
    product = np.empty_like(grams[0])
    for r in range(rank):
        total = b0 * scale
        for k in range(order):
            if k != mode:
                total *= sums[k, r]
        for i in range(G.shape[0]):
            G[i, r] += total
    if b1 != 0.0:
        for r in range(rank):
            for q in range(rank):
                total = b1 * scale
                for k in range(order):
                    if k != mode:
                        total *= grams[k, r, q]
                product[r, q] = total
        G += np.dot(A_tile, product)


@exact_subroutine
def square_sum(grams):
    """The sum of m² over all cells."""
    total = 0.0
    for r in range(grams.shape[1]):
        for q in range(grams.shape[2]):
            product = 1.0
            for k in range(grams.shape[0]):
                product *= grams[k, r, q]
            total += product
    return total


@exact_subroutine
def summarise(F, use_gram, sums, gram):
    """Column sums of a factor and, if asked for, its Gram matrix."""
    sums[:] = 0
    for i in range(F.shape[0]):
        for r in range(F.shape[1]):
            sums[r] += F[i, r]
    if use_gram:
        np.dot(F.T, F, gram)
