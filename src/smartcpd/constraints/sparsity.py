"""A price on every entry that is not zero, by its size."""

from dataclasses import dataclass

import numpy as np

from smartcpd.constraints.signs import Price


@dataclass(frozen=True)
class Sparsity(Price):
    """Entries pay ``weight * sum |a|``, which sets small ones to exactly 0.

    Parameters
    ----------
    weight : float
        The price, 0 or more.
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("sparsity(1)").apply([[0.5], [3.0]])
    array([[0.],
           [2.]])
    """

    name = "sparsity"

    def penalty(self, A):
        return self.weight * float(np.sum(np.abs(A), dtype=np.float64))

    def settle(self, average, last):
        return np.where(last == 0, 0.0, average)

    @property
    def smooth_within(self):
        return None if self.signed else (0.0, np.inf)

    def penalty_slope(self, A):
        return np.full_like(A, self.weight)

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        weight, nonnegative = p[0], p[1] > 0.0
        z, gamma = Z.reshape(-1), Gamma.reshape(-1)
        for i in range(z.size):
            threshold = weight / gamma[i]
            below = 0.0 if nonnegative else min(z[i] + threshold, 0.0)
            z[i] = max(z[i] - threshold, 0.0) + below
