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
from smartcpd._kernels.hot_counts import REFRESH, add_hot
from smartcpd._kernels.lanes import LANES, load, store
from smartcpd._kernels.mixture_counts import PAIRED, count_pairs, make_count_events

MOMENTUM = 0.95
"""The most that a step goes on beyond where the last two points lead to."""
LEAST, MOST = 0.3, 3.0
"""Bounds of the ratio by which an extrapolation changes an entry."""
RELAXATION = 1.5
"""The factor by which EM's step is lengthened."""
LEAST_MASS, FALL = 1e-5, 0.7
"""No entry of a column is less than its share of this mass, spread evenly over the rows. The mass
may be larger in the first pass, and falls by this factor from pass to pass."""
LAST = 5
"""Number of passes whose gains are added up to tell whether anything is left to gain."""
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
    flat, nothing = S.reshape(-1), S.dtype.type(0.0)
    for i in range(flat.size):
        flat[i] = max(flat[i], nothing)
    column_sums(S, 0, offsets[1], row)
    for r in range(weights.size):
        weights[r] = row[0, r]
    share = S.dtype.type(smoothing / max(weights.sum(), TINY))
    for k in range(offsets.size - 1):
        first, last = offsets[k], offsets[k + 1]
        if share > nothing:
            for i in range(first, last):
                for r in range(weights.size):
                    S[i, r] += share * weights[r]
        for r in range(weights.size):
            row[0, r] = inverse(weights[r] * (1.0 + (last - first) * share))
        scale_columns(S, first, last, row)


@subroutine
def extrapolate(
    columns, weights, origin, origin_weights, stretch, least_mass, offsets, out, out_weights, row
):
    """Go on from an origin past a mixture, by ``stretch`` of the way between them."""
    real = columns.dtype.type
    longer, least, most = real(stretch), real(LEAST), real(MOST)
    for r in range(weights.size):
        w = weights[r]
        out_weights[r] = min(max(w + longer * (w - origin_weights[r]), least * w), most * w)
    whole = weights.sum() / max(out_weights.sum(), TINY)
    for r in range(weights.size):
        out_weights[r] *= whole
    for k in range(offsets.size - 1):
        first, last = offsets[k], offsets[k + 1]
        lowest = real(least_mass / (last - first))
        here, there = columns[first:last].reshape(-1), origin[first:last].reshape(-1)
        found = out[first:last].reshape(-1)
        for i in range(here.size):
            a = here[i]
            a = min(max(a + longer * (a - there[i]), least * a), most * a)
            found[i] = max(a, lowest)
        column_sums(out, first, last, row)
        for r in range(weights.size):
            row[0, r] = inverse(row[0, r])
        scale_columns(out, first, last, row)


def make_improve(variant: Any, count: Any) -> Any:
    """The passes below, with one of the ways to count of `mixture_counts`."""

    @variant_subroutine(variant)
    def improve(events, background, share, most_hot, offsets, rank, how, columns, weights, done):
        """Improve a mixture in place by some passes, or until a few of them gain no more than
        they must; return its loss, the sum over all cells.

        ``how`` is the number of passes, the events that smooth them, the mass that lifts entries
        and that gain; ``done`` is told how many passes were made, and whether nothing is left to
        gain. Events of the smallest weight count for a ``share`` of one. For ``background`` see
        `add_hot`; NaN is returned where more than ``most_hot`` cells are hot. A pass begins where
        the last two points lead to; where the loss is higher there, the next one begins at the last
        point that was accepted, without momentum.
        """
        n_passes, smoothing, lift, least = how
        slope = background[3]
        scale = columns.dtype.type(share / slope)
        cells, hot = np.empty((most_hot, offsets.size - 1), np.uint32), np.zeros(1)
        accepted, accepted_weights = columns.copy(), weights.copy()
        point, point_weights = columns.copy(), weights.copy()
        previous, previous_weights = columns.copy(), weights.copy()
        start, start_weights = columns.copy(), weights.copy()
        A, S = columns.copy(), np.zeros_like(columns)
        target_weights = weights.copy()
        row = np.empty((1, weights.size), columns.dtype)
        rest = columns.dtype.type(1.0 - share)
        loss, momentum = np.inf, 1.0
        moving, careful = False, False
        gains = np.full(LAST, np.inf)
        done[0], done[1] = 0.0, 0.0
        for n in range(n_passes):
            done[0] += 1.0
            mass = max(LEAST_MASS, lift * FALL**n)
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
                mass,
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
                    S[i, r] = rest * start[i, r] * start_weights[r]
            if n % REFRESH == 0:
                hot[0] = -1.0
            value = slope * start_weights.sum() + count(events, scale, A, S)
            value += add_hot(background, offsets, rank, cells, hot, scale, A, S)
            if value > loss and moving:
                copy_matrix(accepted, point)
                copy(accepted_weights, point_weights)
                moving, momentum, careful = False, 1.0, True
                continue
            gains[n % LAST] = loss - value
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
                mass,
                offsets,
                point,
                point_weights,
                row,
            )
            moving, careful = True, False
            if gains.sum() <= least:
                done[1] = 1.0
                break
        copy_matrix(accepted, columns)
        copy(accepted_weights, weights)
        return loss

    return improve


def make_mixture_passes(order: int) -> Any:
    """The passes below for tensors of one order."""
    improve = make_improve(order, make_count_events(order))

    def mixture_passes(
        events: kinds.EventArrays,
        of_zeros: kinds.ZeroParts,
        loss_p: kinds.Params,
        zeros: kinds.Doubles,
        look_up: kinds.LookUp,
        most_hot: kinds.Integer,
        offsets: kinds.Integers,
        rank: kinds.Integer,
        how: kinds.PassPlan,
        columns: kinds.Matrix,
        weights: kinds.Vector,
        done: kinds.Doubles,
    ) -> kinds.Double:
        """Improve a mixture by passes over events of any loss and weight. ``zeros`` holds the slope
        of a zero's loss, the share of one that the smallest weight is, and the model value from
        which on a cell is hot.
        """
        value, derivative = of_zeros
        background = value, derivative, loss_p, zeros[0], zeros[2], look_up
        return improve(
            (*events, loss_p),
            background,
            zeros[1],
            most_hot,
            offsets,
            rank,
            how,
            columns,
            weights,
            done,
        )

    return mixture_passes


@cache
def compiled_mixture_passes(order: int) -> Any:
    return kinds.compile_annotated(make_mixture_passes(order), order)


improve_paired = make_improve(PAIRED, count_pairs)


def paired_passes(
    events: kinds.PairArrays,
    of_zeros: kinds.ZeroParts,
    loss_p: kinds.Params,
    zeros: kinds.Doubles,
    look_up: kinds.LookUp,
    most_hot: kinds.Integer,
    offsets: kinds.Integers,
    rank: kinds.Integer,
    how: kinds.PassPlan,
    columns: kinds.Matrix,
    weights: kinds.Vector,
    done: kinds.Doubles,
) -> kinds.Double:
    """Improve a mixture by passes over events that are sorted into pairs."""
    T = np.empty((len(events[1]), columns.shape[1]), columns.dtype)
    value, derivative = of_zeros
    background = value, derivative, loss_p, zeros[0], zeros[2], look_up
    return improve_paired(
        (*events, T, np.empty_like(T)),
        background,
        zeros[1],
        most_hot,
        offsets,
        rank,
        how,
        columns,
        weights,
        done,
    )


@cache
def compiled_paired_passes(dtype: str) -> Any:
    return kinds.compile_annotated(paired_passes, dtype=dtype)
