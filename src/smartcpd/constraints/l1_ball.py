"""Columns whose absolute values have a bounded sum."""

from dataclasses import dataclass

import numpy as np

from smartcpd.constraints.signs import Ball
from smartcpd.constraints.unit_sum import fit_unit_sum, workspace


@dataclass(frozen=True)
class L1Ball(Ball):
    """The absolute values of every column sum to at most ``radius``, which leaves few nonzeros.

    Parameters
    ----------
    radius : float
        The bound, above 0.
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("l1-ball(1)").apply([[1.5], [0.5]]).round(6)
    array([[1.],
           [0.]])
    """

    name = "l1-ball"

    def settle(self, average, last):
        return np.where(last == 0, 0.0, average)

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        radius, nonnegative = p[0], p[1] > 0.0
        work = workspace(Z)
        z, gamma = np.empty(Z.shape[0], Z.dtype), np.empty(Z.shape[0], Z.dtype)
        for r in range(Z.shape[1]):
            total = np.float64(0.0)
            for i in range(z.size):
                if nonnegative:
                    Z[i, r] = max(Z[i, r], 0.0)
                z[i] = abs(Z[i, r]) / radius
                gamma[i] = Gamma[i, r]
                total += z[i]
            if total > 1.0:
                # The shrinkage is that of a simplex: it keeps signs, and its multiplier is positive
                # here.
                fit_unit_sum(z, gamma, to_dual, to_primal, mirror_p, 0.0, 0.0, work)
                for i in range(z.size):
                    Z[i, r] = np.copysign(radius * z[i], Z[i, r])
