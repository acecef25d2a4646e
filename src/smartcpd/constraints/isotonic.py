"""Weighted isotonic regression of one column, and its error for every prefix."""

import numpy as np

from smartcpd._kernels.compiling import inline


@inline
def workspace(Z):
    """Make room for the levels, weights and errors of pooled entries.

    They are sums of many entries and hence float64, whatever type Z has.
    """
    return np.empty((3, Z.shape[0])), np.empty(Z.shape[0], np.intp)


@inline
def fit_increasing(z, gamma, floor, work, errors):
    """Replace z by its weighted least-squares fit among nondecreasing columns above ``floor``.

    errors[i] becomes the squared error of the fit to the first i + 1 entries: pooling adjacent
    violators from the left passes through all of these fits.
    """
    (level, weight, spread), start = work
    top = -1
    for i in range(z.size):
        mean, mass, error, first = np.float64(z[i]), np.float64(gamma[i]), 0.0, i
        while top >= 0 and level[top] > mean:
            share = weight[top] / (weight[top] + mass)
            gap = level[top] - mean
            error += spread[top] + share * mass * gap * gap
            mean += share * gap
            mass += weight[top]
            first = start[top]
            top -= 1
        top += 1
        level[top], weight[top], spread[top], start[top] = mean, mass, error, first
        below = min(mean - floor, 0.0)
        errors[i] = error + mass * below * below + (errors[first - 1] if first > 0 else 0.0)
    end = z.size
    while top >= 0:
        z[start[top] : end] = max(level[top], floor)
        end = start[top]
        top -= 1
