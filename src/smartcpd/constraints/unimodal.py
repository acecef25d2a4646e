"""Columns with one peak."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.compiling import inline
from smartcpd._kernels.copying import copy
from smartcpd.constraints.isotonic import fit_increasing, workspace
from smartcpd.constraints.signs import EitherSign


@dataclass(frozen=True)
class Unimodal(EitherSign):
    """Every column rises to a single peak and falls from there.

    Among equally good peaks, the first is taken.

    Parameters
    ----------
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("unimodal").apply([[1.0], [5.0], [1.0], [2.0]])
    array([[1. ],
           [5. ],
           [1.5],
           [1.5]])
    """

    name = "unimodal"
    cone = True
    columnwise = True

    def settle(self, average, last):
        return self.apply(average)

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        floor = 0.0 if p[1] > 0.0 else -np.inf
        n = Z.shape[0]
        column, gamma, work = np.empty(n, Z.dtype), np.empty(n, Z.dtype), workspace(Z)
        rising, falling = np.empty(n), np.empty(n)
        for r in range(Z.shape[1]):
            up, down = Z[:, r], Z[::-1, r]
            _fit(up, Gamma[:, r], floor, column, gamma, work, rising)
            _fit(down, Gamma[::-1, r], floor, column, gamma, work, falling)
            rise = _best_rise(rising, falling)
            fall = n - rise
            fitted = _fit(up[:rise], Gamma[:, r], floor, column, gamma, work, rising)
            copy(fitted, up)
            fitted = _fit(down[:fall], Gamma[::-1, r], floor, column, gamma, work, falling)
            copy(fitted, down)


@inline
def _fit(z, weights, floor, column, gamma, work, errors):
    n = z.size
    copy(z, column)
    copy(weights[:n], gamma)
    fit_increasing(column[:n], gamma[:n], floor, work, errors)
    return column[:n]


@inline
def _best_rise(rising, falling):
    """Return how many entries to fit by a rise, the rest by a fall; such a pair has one peak."""
    n = rising.size
    best, least = n, rising[n - 1]
    for rise in range(n - 1, 0, -1):
        error = rising[rise - 1] + falling[n - rise - 1]
        if error <= least:
            best, least = rise, error
    return best
