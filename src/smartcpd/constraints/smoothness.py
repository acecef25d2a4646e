"""A price on the differences between neighbours in a column."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.compiling import inline
from smartcpd._kernels.copying import copy
from smartcpd.constraints.signs import Price


@dataclass(frozen=True)
class Smoothness(Price):
    """Columns pay weight / 2 * sum (a[i+1] - a[i])² for the differences between neighbours.

    Parameters
    ----------
    weight : float
        The price, 0 or more.
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("smoothness(0.5)").apply([[1.0], [3.0]]).round(6)
    array([[1.5],
           [2.5]])
    """

    name = "smoothness"
    columnwise = True
    is_quadratic = True

    def penalty(self, A):
        steps = np.diff(np.asarray(A, dtype=np.float64), axis=0)
        return 0.5 * self.weight * float(np.sum(steps**2))

    def penalty_slope(self, A):
        steps = self.weight * np.diff(A, axis=0)
        out = np.zeros_like(A)
        out[1:] += steps
        out[:-1] -= steps
        return out

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        weight, nonnegative = p[0], p[1] > 0.0
        work, free = np.empty((5, Z.shape[0]), Z.dtype), np.empty(Z.shape[0], np.bool_)
        z, gamma, a = work[0], work[1], work[2]
        for r in range(Z.shape[1]):
            copy(Z[:, r], z)
            copy(Gamma[:, r], gamma)
            for i in range(z.size):
                free[i] = z[i] > 0.0 or not nonnegative
            backward = False
            while _sweep(z, gamma, weight, free, backward, a, work[3], work[4]):
                backward = not backward
            for i in range(z.size):
                Z[i, r] = max(a[i], 0.0) if nonnegative else a[i]


@inline
def _sweep(z, gamma, weight, free, backward, a, load, pivot):
    """Minimise over the free entries, the others being 0, and free those that want to be positive.

    Whatever is free, the solution is at most that of the whole problem (its matrix has an inverse
    without negative entries), so that no entry is ever freed in vain: starting from the positive
    entries of z, the result is exact once a sweep frees nothing. A sweep can free all to its right
    and little to its left, hence the two directions.

    The elimination is that of a chain of springs: ``ground`` is what holds the entry in place, so
    that no small gamma is lost in a difference of two large weights.
    """
    n = z.size
    freed = False
    pull, link = 0.0, 0.0
    for t in range(n):
        i = n - 1 - t if backward else t
        load[i] = np.float64(gamma[i]) * z[i] + pull
        ground = gamma[i] + link
        pivot[i] = ground + (weight if t < n - 1 else 0.0)
        if load[i] > 0.0 and not free[i]:
            free[i] = freed = True
        pull = weight * load[i] / pivot[i] if free[i] else 0.0
        link = weight * ground / pivot[i] if free[i] else weight
    after = 0.0
    for t in range(n - 1, -1, -1):
        i = n - 1 - t if backward else t
        total = load[i] + weight * after
        if total > 0.0 and not free[i]:
            free[i] = freed = True
        after = total / pivot[i] if free[i] else 0.0
        a[i] = after
    return freed
