"""The Bregman projection of one column on the entries that sum to 1, for any mirror map."""

import numpy as np

from smartcpd._kernels.compiling import inline
from smartcpd._kernels.copying import copy
from smartcpd._kernels.elementary import exp, log

NEWTON_STEPS = 30
MAX_STEPS = 100
SLACK = 1e-6
"""Relative distance by which the first bracket is widened, for a root at one of its ends."""


def curvature_exponent(mirror):
    """Return the q for which phi''(a) ~ a^q; a map without one only gets slower steps."""
    return round(float(np.log2(mirror.unit(2.0) / mirror.unit(1.0))) - 1.0, 6)


@inline
def workspace(Z):
    """Make room for the lines, the duals and the ends of the bracket."""
    return np.empty((4, Z.shape[0] + 2), Z.dtype)


@inline
def _follow_one(dual, gamma, bottom, top, offset, slope):
    """Write every dual as a line offset + slope * theta.

    theta is the dual of the entry that is the first to reach 1. Its present value is returned, and
    the value at which no entry exceeds 1 / n.
    """
    k, nearest = 0, -np.inf
    largest = np.finfo(dual.dtype).max
    for i in range(dual.size):
        dual[i] = min(max(dual[i], -largest), largest)
        distance = gamma[i] * (np.float64(dual[i]) - top)
        if distance > nearest:
            k, nearest = i, distance
    theta = np.float64(dual[k])
    low = np.float64(bottom)
    for i in range(dual.size):
        ratio = np.float64(gamma[k]) / gamma[i]
        slope[i] = ratio
        offset[i] = dual[i] - ratio * theta
    slope[k], offset[k] = 1.0, 0.0
    for i in range(dual.size):
        low = min(low, (bottom - offset[i]) / slope[i])
    return theta, low


@inline
def _total_and_rise(a, slope, floor, q):
    """Clip a at the floor; return its sum, and the derivative of phi'(sum) by theta."""
    total, rise = 0.0, 0.0
    if q == -1.0:  # The entropy is the common case, and needs no power.
        for i in range(a.size):
            rise += slope[i] * a[i] if a[i] > floor else 0.0
            a[i] = max(a[i], floor)
            total += a[i]
    else:
        for i in range(a.size):
            rise += slope[i] * exp(-q * log(np.float64(a[i]))) if a[i] > floor else 0.0
            a[i] = max(a[i], floor)
            total += a[i]
    return total, rise * exp(q * log(total))


@inline
def fit_unit_sum(z, gamma, to_dual, to_primal, mirror_p, floor, q, work):
    """Turn duals z into entries that sum to 1.

    They are max(to_primal(z - nu / gamma), floor) with the right nu. The duals may lie outside of
    the map's range, where no entry belongs to them: the nu leads back.

    The unknown is theta, the dual of one entry, rather than nu: beside the large duals of tiny
    entries a nu would round off all that tells the entries apart. The equation is written as
    phi'(sum) = phi'(1), which is straight in theta for a single entry and for the entropy with
    equal weights, and convex for all maps but power(c > 2): a few steps of Newton's method.
    """
    n = z.size
    offset, slope, dual, ends = work[0, :n], work[1, :n], work[2, :n], work[3, :2]
    copy(z, dual)
    ends[0], ends[1] = 1.0 / n, 1.0
    to_dual(ends, mirror_p, ends)
    top = np.float64(ends[1])
    theta, low = _follow_one(dual, gamma, ends[0], top, offset, slope)
    theta = min(max(theta, low), top)
    low, high = low - SLACK * abs(low), top + SLACK * abs(top)
    for step in range(MAX_STEPS):
        for i in range(n):
            dual[i] = offset[i] + slope[i] * theta
        to_primal(dual, mirror_p, z)
        total, rise = _total_and_rise(z, slope, floor, q)
        if abs(total - 1.0) <= 16.0 * np.finfo(z.dtype).eps:
            break
        if total > 1.0:
            high = theta
        else:
            low = theta
        ends[1] = total
        to_dual(ends, mirror_p, ends)
        new = theta - (ends[1] - top) / rise
        if step >= NEWTON_STEPS or not low < new < high:
            new = 0.5 * (low + high)
        if new == theta:
            break
        theta = new
    for i in range(n):
        z[i] /= total
