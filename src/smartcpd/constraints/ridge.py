"""A price on the square of every entry."""

from dataclasses import dataclass

import numpy as np

from smartcpd.constraints.signs import Price


@dataclass(frozen=True)
class Ridge(Price):
    """Entries pay weight / 2 * sum a², which draws all of them towards 0.

    Parameters
    ----------
    weight : float
        The price, 0 or more.
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("ridge(1)").apply([[-2.0], [3.0]])
    array([[-1. ],
           [ 1.5]])
    """

    name = "ridge"
    is_quadratic = True

    def penalty(self, A):
        return 0.5 * self.weight * float(np.sum(np.asarray(A, dtype=np.float64) ** 2))

    def penalty_slope(self, A):
        return self.weight * A

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        weight, nonnegative = p[0], p[1] > 0.0
        z, gamma = Z.reshape(-1), Gamma.reshape(-1)
        for i in range(z.size):
            a = z[i] * (gamma[i] / (gamma[i] + weight))
            z[i] = max(a, 0.0) if nonnegative else a
