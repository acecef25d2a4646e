"""Columns of bounded length."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.compiling import inline
from smartcpd.constraints.signs import Ball

MAX_STEPS = 100


@dataclass(frozen=True)
class L2Ball(Ball):
    """The squares of every column sum to at most the square of ``radius``.

    Parameters
    ----------
    radius : float
        The bound on the length of a column, above 0.
    nonnegative : bool, optional
        Whether entries must not be negative; the loss decides by default.

    Examples
    --------
    >>> from smartcpd import constraints
    >>> constraints.get("l2-ball(1)").apply([[3.0], [4.0]]).round(6)
    array([[0.6],
           [0.8]])
    """

    name = "l2-ball"

    @staticmethod
    def project(Z, Gamma, to_dual, to_primal, mirror_p, p):
        radius, nonnegative = p[0], p[1] > 0.0
        z, gamma = np.empty(Z.shape[0], Z.dtype), np.empty(Z.shape[0], Z.dtype)
        for r in range(Z.shape[1]):
            for i in range(z.size):
                z[i] = max(Z[i, r], 0.0) if nonnegative else Z[i, r]
                gamma[i] = Gamma[i, r]
            nu = _multiplier(z, gamma, radius)
            for i in range(z.size):
                Z[i, r] = z[i] * (gamma[i] / (gamma[i] + nu)) if nu > 0.0 else z[i]


@inline
def _multiplier(z, gamma, radius):
    """Return the nu >= 0 for which z * gamma / (gamma + nu) has length ``radius``, or 0 inside.

    1 / length is concave in nu, and straight where the weights are equal, so that Newton's method
    on it rises to the root without passing it.
    """
    nu = 0.0
    for _ in range(MAX_STEPS):
        square, fall = 0.0, 0.0
        for i in range(z.size):
            stiffness = gamma[i] + nu
            a = z[i] * (gamma[i] / stiffness)
            square += a * a
            fall += a * a / stiffness
        excess = np.sqrt(square) / radius - 1.0
        if not excess > 1e-15:
            break
        nu += excess * square / fall
    return nu
