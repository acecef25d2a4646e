"""Passes of extrapolated EM over the events of a mixture, many in one call.

A search makes thousands of passes over few events, each of which is over before Python could have
begun the next one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine, variant_subroutine
from smartcpd._kernels.copying import copy, copy_matrix
from smartcpd._kernels.lanes import LANES, load, store
from smartcpd._kernels.mixture_counts import REFRESH, make_counted
from smartcpd._kernels.paired_events import add_paired, add_to_rows, write_products

MOMENTUM = 0.95
"""The most that a step goes on beyond where the last two points lead to."""
LEAST, MOST = 0.3, 3.0
"""Bounds of the ratio by which an extrapolation changes an entry."""
RELAXATION = 1.5
"""The factor by which EM's step is lengthened."""
TINY = 1e-300


@subroutine
def inverse(a):
    """1 / a, or 0 where a column has nothing."""
    return 1.0 / a if a > 0.0 else 0.0


@subroutine
def column_sums(A, first, last, sums):
    """Write the sums over some rows of A to the one row of ``sums``."""
    for r in range(A.shape[1]):
        sums[0, r] = 0.0
    for i in range(first, last):
        for r in range(0, A.shape[1], LANES):
            store(sums, 0, r, load(sums, 0, r) + load(A, i, r))


@subroutine
def scale_columns(A, first, last, scale):
    """Multiply some rows of A by the one row of ``scale``."""
    for i in range(first, last):
        for r in range(0, A.shape[1], LANES):
            store(A, i, r, load(A, i, r) * load(scale, 0, r))


@subroutine
def normalise(S, offsets, smoothing, weights, row):
    """Turn counts into columns of unit sum, in place, and weights, with ``smoothing`` events spread
    evenly over the rows of each mode. ``row`` is room for one row.
    """
    flat = S.reshape(-1)
    for i in range(flat.size):
        flat[i] = max(flat[i], 0.0)
    column_sums(S, 0, offsets[1], row)
    for r in range(weights.size):
        weights[r] = row[0, r]
    whole = max(weights.sum(), TINY)
    for k in range(offsets.size - 1):
        first, last = offsets[k], offsets[k + 1]
        if smoothing > 0.0:
            for i in range(first, last):
                for r in range(weights.size):
                    S[i, r] += smoothing / whole * weights[r]
        for r in range(weights.size):
            added = smoothing / whole * weights[r]
            row[0, r] = inverse(weights[r] + (last - first) * added)
        scale_columns(S, first, last, row)


@subroutine
def extrapolate(columns, weights, origin, origin_weights, stretch, offsets, out, out_weights, row):
    """Go on from an origin past a mixture, by ``stretch`` of the way between them."""
    for r in range(weights.size):
        w = weights[r]
        out_weights[r] = min(max(w + stretch * (w - origin_weights[r]), LEAST * w), MOST * w)
    whole = weights.sum() / max(out_weights.sum(), TINY)
    for r in range(weights.size):
        out_weights[r] *= whole
    here, there, found = columns.reshape(-1), origin.reshape(-1), out.reshape(-1)
    for i in range(here.size):
        a = here[i]
        found[i] = min(max(a + stretch * (a - there[i]), LEAST * a), MOST * a)
    for k in range(offsets.size - 1):
        column_sums(out, offsets[k], offsets[k + 1], row)
        for r in range(weights.size):
            row[0, r] = inverse(row[0, r])
        scale_columns(out, offsets[k], offsets[k + 1], row)


def make_improve(variant: Any, count: Any) -> Any:
    """The passes below, with a function that counts events in one of the ways that there are:
    ``count(events, n, A, S)`` adds their counts in pass n to S, and returns what they add to the
    loss.
    """

    @variant_subroutine(variant)
    def improve(events, slope, share, offsets, n_passes, smoothing, columns, weights):
        """Improve a mixture in place by some passes; return its loss, the sum over all cells.

        Where the loss of all cells has the slope s, events of the smallest weight count for a
        ``share`` of one. A pass begins where the last two points lead to; where the loss is
        higher there, the next one begins at the last point that was accepted, without momentum.
        """
        accepted, accepted_weights = columns.copy(), weights.copy()
        point, point_weights = columns.copy(), weights.copy()
        previous, previous_weights = columns.copy(), weights.copy()
        start, start_weights = columns.copy(), weights.copy()
        A, S = columns.copy(), np.zeros(columns.shape)
        target_weights = weights.copy()
        row = np.empty((1, weights.size), columns.dtype)
        loss, momentum = np.inf, 1.0
        moving, careful = False, False
        for n in range(n_passes):
            stretch = 0.0
            if moving:
                longer = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
                stretch = min((momentum - 1.0) / longer, MOMENTUM)
                momentum = longer
            extrapolate(
                point,
                point_weights,
                previous,
                previous_weights,
                stretch,
                offsets,
                start,
                start_weights,
                row,
            )
            copy_matrix(start, A)
            for r in range(weights.size):
                row[0, r] = start_weights[r]
            scale_columns(A, 0, offsets[1], row)
            for i in range(len(A)):
                for r in range(weights.size):
                    S[i, r] = (1.0 - share) * start[i, r] * start_weights[r]
            value = slope * start_weights.sum() + count(events, n, A, S)
            if value > loss and moving:
                copy_matrix(accepted, point)
                copy(accepted_weights, point_weights)
                moving, momentum, careful = False, 1.0, True
                continue
            loss = value
            start, accepted = accepted, start
            start_weights, accepted_weights = accepted_weights, start_weights
            point, previous = previous, point
            point_weights, previous_weights = previous_weights, point_weights
            normalise(S, offsets, smoothing, target_weights, row)
            extrapolate(
                S,
                target_weights,
                accepted,
                accepted_weights,
                0.0 if careful else RELAXATION - 1.0,
                offsets,
                point,
                point_weights,
                row,
            )
            moving, careful = True, False
        copy_matrix(accepted, columns)
        copy(accepted_weights, weights)
        return loss

    return improve


def make_mixture_passes(order: int) -> Any:
    """The passes below for tensors of one order."""
    counted, _ = make_counted(order)

    @variant_subroutine(order)
    def count(events, n, A, S):
        rows, x, own_weights, blocks, loss_p, zeros, look_up, offsets, rank, cells, hot = events
        if n % REFRESH == 0:
            hot[0] = -1.0
        scale = zeros[1] / zeros[0]
        return counted(
            rows,
            x,
            own_weights,
            blocks,
            loss_p,
            zeros,
            look_up,
            offsets,
            rank,
            cells,
            hot,
            scale,
            A,
            S,
        )

    improve = make_improve(order, count)

    def mixture_passes(
        rows: kinds.Rows,
        x: kinds.Vector,
        own_weights: kinds.Vector,
        blocks: kinds.LossParts,
        loss_p: kinds.Params,
        zeros: kinds.Vector,
        look_up: kinds.LookUp,
        most_hot: kinds.Integer,
        offsets: kinds.Integers,
        rank: kinds.Integer,
        n_passes: kinds.Integer,
        smoothing: kinds.Real,
        columns: kinds.Matrix,
        weights: kinds.Vector,
    ) -> kinds.Double:
        """Improve a mixture in place by some passes; return its loss, the sum over all cells.

        ``rows`` are those of the events in the stacked, padded columns; for ``zeros`` see
        `mixture_counts`. NaN is returned where more than ``most_hot`` cells are hot.
        """
        cells, hot = np.empty((most_hot, order), np.uint32), np.zeros(1)
        events = rows, x, own_weights, blocks, loss_p, zeros, look_up, offsets, rank, cells, hot
        return improve(events, zeros[0], zeros[1], offsets, n_passes, smoothing, columns, weights)

    return mixture_passes


@cache
def compiled_mixture_passes(order: int) -> Any:
    return kinds.compile_annotated(make_mixture_passes(order), order)


@variant_subroutine("paired")
def count_paired(events, n, A, S):
    outer, inner, starts, partners, x, floor, T, G = events
    write_products(A, inner, T)
    for j in range(len(G)):
        for r in range(G.shape[1]):
            G[j, r] = 0.0
    loss = add_paired(outer, starts, partners, x, 0, len(outer), floor, A, T, G, S)
    add_to_rows(T, G, inner, S)
    return loss


improve_paired = make_improve("paired", count_paired)


def paired_passes(
    outer: kinds.Rows,
    inner: kinds.Rows,
    starts: kinds.Integers,
    partners: kinds.Places,
    x: kinds.Vector,
    floor: kinds.Real,
    offsets: kinds.Integers,
    n_passes: kinds.Integer,
    smoothing: kinds.Real,
    columns: kinds.Matrix,
    weights: kinds.Vector,
) -> kinds.Double:
    """Improve a mixture in place by some passes over counts that are sorted into pairs; return its
    loss, the sum over all cells.
    """
    T = np.empty((len(inner), columns.shape[1]), columns.dtype)
    events = outer, inner, starts, partners, x, floor, T, np.empty_like(T)
    return improve_paired(events, 1.0, 1.0, offsets, n_passes, smoothing, columns, weights)


@cache
def compiled_paired_passes() -> Any:
    return kinds.compile_annotated(paired_passes)
