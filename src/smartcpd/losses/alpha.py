"""The alpha-divergence, a family between Kullback-Leibler's divergence and its reverse."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import exp, log
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import EPS, Data, Domain, Loss

TINY = 1e-30
"""Stands for a zero inside a logarithm that is multiplied by 0."""


@dataclass(frozen=True)
class Alpha(Loss):
    """Nonnegative measurements: the smaller alpha, the less a value far above its model counts.

    Distribution: none whose mean is m, but for alpha = 1, which is loss "poisson"; what m estimates
    is the power mean, (mean of x^alpha)^(1/alpha).  Link: identity.

    l(x, m) = (x^alpha u^(1-alpha) - alpha x + (alpha - 1) u) / (alpha (alpha - 1)) with
    u = m + eps;  derivative (1 - (x / u)^alpha) / alpha.  Domain: m >= 0.
    alpha = 1 is Kullback-Leibler's divergence x log(x / u) - x + u, alpha = 0 its reverse
    u log(u / x) - u + x; 2, 1/2 and -1 are those of Pearson, Hellinger and Neyman, up to a factor.
    Up to alpha = 0, where zeros cannot be observed, x is x + eps.

    Matched mirror map: power(1-alpha) above 1 and below 0, burg from there to 1, none at 0.

    Parameters
    ----------
    alpha : float
        The exponent of x.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("alpha(0.5)")
    >>> round(loss.derivative(1.0, 0.25, loss.params), 4)
    -2.0
    """

    alpha: float

    name = "alpha"
    spelled = "alpha(0.5)"
    data = Data.NONNEGATIVE
    domain = Domain.NONNEGATIVE
    convex = True
    default_mirror = "entropy"

    def __post_init__(self):
        if not np.isfinite(self.alpha):
            raise InvalidParameterError(f"alpha must be a finite number; got {self.alpha!r}.")

    @property
    def divergence(self):
        return 1.0 if self.alpha == 1 else None

    @property
    def homogeneity(self):
        return 1.0

    @property
    def pseudo_count_slope(self):
        # What is taken from m / alpha is in proportion to m^(1-alpha).
        return 1.0 / self.alpha if 0 < self.alpha <= 1 else None

    @property
    def collapses(self):
        # l(x, 0) = x / (1 - alpha), whatever eps is.
        return 0 < self.alpha < 1

    @property
    def jensen_mirror(self):
        if self.alpha == 0:
            return None
        # Between 0 and 1 the convex part is a concave function of log m as well, and burg's map
        # majorises it: -a^(1-alpha) would, too, in longer steps, but is no map of this package.
        return "burg" if 0 < self.alpha <= 1 else f"power({1.0 - float(self.alpha)!r})"

    @property
    def allows_zeros(self):
        return self.alpha > 0

    @property
    def background(self):
        # l(0, m) = u / alpha.
        return (EPS / self.alpha, 1.0 / self.alpha, 0.0) if self.alpha > 0 else None

    @property
    def convex_background(self):
        return (0.0, 0.0) if self.alpha > 0 else None

    @staticmethod
    def value(x, m, p):
        alpha = p[0]
        u = m + EPS
        v = x if alpha > 0.0 else x + EPS
        y = log(max(v, TINY) / u)
        if alpha == 0.0:
            return v - u - u * y
        if alpha == 1.0:
            return u - v + v * y
        power = exp(alpha * y) if v > 0.0 else 0.0
        return (u * (power + (alpha - 1.0)) - alpha * v) / (alpha * (alpha - 1.0))

    @staticmethod
    def derivative(x, m, p):
        alpha = p[0]
        v = x if alpha > 0.0 else x + EPS
        y = log(max(v, TINY) / (m + EPS))
        if alpha == 0.0:
            return -y
        power = exp(alpha * y) if v > 0.0 else 0.0
        return (1.0 - power) / alpha

    @staticmethod
    def convex_derivative(x, m, p):
        alpha = p[0]
        v = x if alpha > 0.0 else x + EPS
        power = exp(alpha * log(max(v, TINY) / (m + EPS))) if v > 0.0 else 0.0
        return -power / alpha
