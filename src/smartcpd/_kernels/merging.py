"""Merging of the components of a mixture, by what that costs in information about events."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import subroutine
from smartcpd._kernels.copying import copy
from smartcpd._kernels.elementary import log

TINY = 1e-300


@subroutine
def told(column):
    """What a column of probabilities tells about an index, relative to nothing."""
    bits = 0.0
    for i in range(column.size):
        bits += column[i] * log(column[i] + TINY)
    return bits


@subroutine
def lost(columns, weights, bits, one, two, average):
    """What a merge of two components loses: what they tell beyond what their average tells, times
    their weight, which is about what it costs in log-likelihood.
    """
    both = weights[one] + weights[two]
    share = weights[one] / max(both, TINY)
    for i in range(average.size):
        average[i] = share * columns[one, i] + (1.0 - share) * columns[two, i]
    return both * (share * bits[one] + (1.0 - share) * bits[two] - told(average))


def merge_components(columns: kinds.Matrix, weights: kinds.Vector, rank: kinds.Integer):
    """Merge the rows of ``columns``, one a component, at the least loss until ``rank`` are left.

    Those are the first ones afterwards; the others are used up.
    """
    n = weights.size
    average = np.empty(columns.shape[1])
    bits = np.empty(n)
    cost = np.full((n, n), np.inf)
    for r in range(n):
        bits[r] = told(columns[r])
    for r in range(n):
        for s in range(r):
            cost[r, s] = cost[s, r] = lost(columns, weights, bits, r, s, average)
    while n > rank:
        least = int(np.argmin(cost[:n, :n].copy()))
        keep, free = least // n, least % n
        share = weights[free] / max(weights[keep] + weights[free], TINY)
        step = share * (columns[free] - columns[keep])
        for i in range(step.size):
            columns[keep, i] += step[i]
        weights[keep] += weights[free]
        n -= 1
        # The last one takes the place that is free.
        copy(columns[n], columns[free])
        weights[free], bits[free] = weights[n], bits[n]
        for r in range(n):
            cost[free, r], cost[r, free] = cost[n, r], cost[r, n]
        cost[free, free] = np.inf
        keep = free if keep == n else keep
        bits[keep] = told(columns[keep])
        for r in range(n):
            if r != keep:
                cost[keep, r] = cost[r, keep] = lost(columns, weights, bits, keep, r, average)


@cache
def compiled_merge_components() -> Any:
    return kinds.compile_annotated(merge_components)
