"""Passes of extrapolated EM over the events of a mixture, many in one call.

A search makes thousands of passes over few events, each of which is over before Python could have
begun the next one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.copying import copy, copy_matrix
from smartcpd._kernels.mixture_counts import REFRESH, make_counted

MOMENTUM = 0.95
"""The most that a step goes on beyond where the last two points lead to."""
LEAST, MOST = 0.3, 3.0
"""Bounds of the ratio by which an extrapolation changes an entry."""
RELAXATION = 1.5
"""The factor by which EM's step is lengthened."""
TINY = 1e-300


@subroutine
def normalise(S, offsets, smoothing, columns, weights):
    """Turn counts into columns of unit sum and weights, with ``smoothing`` events spread evenly
    over the rows of each mode.
    """
    weights[:] = 0.0
    for i in range(offsets[1]):
        for r in range(S.shape[1]):
            weights[r] += max(S[i, r], 0.0)
    whole = max(weights.sum(), TINY)
    for k in range(offsets.size - 1):
        first, last = offsets[k], offsets[k + 1]
        added = smoothing / whole * weights
        scale = 1.0 / np.maximum(weights + (last - first) * added, TINY)
        for i in range(first, last):
            for r in range(S.shape[1]):
                columns[i, r] = (max(S[i, r], 0.0) + added[r]) * scale[r]


@subroutine
def extrapolate(columns, weights, origin, origin_weights, stretch, offsets, out, out_weights):
    """Go on from an origin past a mixture, by ``stretch`` of the way between them."""
    for r in range(weights.size):
        w = weights[r]
        out_weights[r] = min(max(w + stretch * (w - origin_weights[r]), LEAST * w), MOST * w)
    out_weights *= weights.sum() / max(out_weights.sum(), TINY)
    sums = np.empty(weights.size)
    for k in range(offsets.size - 1):
        sums[:] = 0.0
        for i in range(offsets[k], offsets[k + 1]):
            for r in range(weights.size):
                a = columns[i, r]
                a = min(max(a + stretch * (a - origin[i, r]), LEAST * a), MOST * a)
                out[i, r] = a
                sums[r] += a
        scale = 1.0 / np.maximum(sums, TINY)
        for i in range(offsets[k], offsets[k + 1]):
            for r in range(weights.size):
                out[i, r] *= scale[r]


def make_mixture_passes(order: int) -> Any:
    """The passes below for tensors of one order."""
    counted, _ = make_counted(order)

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
        `mixture_counts`. NaN is returned where more than ``most_hot`` cells are hot. A pass begins
        where the last two points lead to; where the loss is higher there, the next one begins at
        the last point that was accepted, without momentum.
        """
        slope, share = zeros[0], zeros[1]
        point, point_weights = columns.copy(), weights.copy()
        previous, previous_weights = columns.copy(), weights.copy()
        start, start_weights = columns.copy(), weights.copy()
        A, S, target = columns.copy(), columns.copy(), columns.copy()
        target_weights = weights.copy()
        cells, hot = np.empty((most_hot, order), np.uint32), np.zeros(1)
        loss, momentum = np.inf, 1.0
        moving, careful = False, False
        for n in range(n_passes):
            if n % REFRESH == 0:
                hot[0] = -1.0
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
            )
            copy_matrix(start, A)
            for i in range(offsets[1]):
                for r in range(weights.size):
                    A[i, r] *= start_weights[r]
            for i in range(len(A)):
                for r in range(weights.size):
                    S[i, r] = (1.0 - share) * start[i, r] * start_weights[r]
            value = slope * start_weights.sum() + counted(
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
                share / slope,
                A,
                S,
            )
            if value > loss and moving:
                copy_matrix(columns, point)
                copy(weights, point_weights)
                moving, momentum, careful = False, 1.0, True
                continue
            loss = value
            copy_matrix(start, columns)
            copy(start_weights, weights)
            copy_matrix(point, previous)
            copy(point_weights, previous_weights)
            normalise(S, offsets, smoothing, target, target_weights)
            extrapolate(
                target,
                target_weights,
                start,
                start_weights,
                0.0 if careful else RELAXATION - 1.0,
                offsets,
                point,
                point_weights,
            )
            moving, careful = True, False
        return loss

    return mixture_passes


@cache
def compiled_mixture_passes(order: int) -> Any:
    return kinds.compile_annotated(make_mixture_passes(order), order)
