"""Counts whose mean is a sum of components."""

from dataclasses import dataclass

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import EPS, Data, Domain, Loss


@dataclass(frozen=True)
class Poisson(Loss):
    """Counts of events; also the generalised Kullback-Leibler divergence for other data >= 0.

    Distribution: x ~ Poisson(m).  Link: identity.

    l(x, m) = m - x log(m + eps);  derivative 1 - x / (m + eps).  Domain: m >= 0.

    Matched mirror map: burg, through the convex part -x log(m + eps).

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("poisson")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -1.0
    """

    name = "poisson"
    data = Data.COUNTS
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"

    @property
    def divergence(self):
        return 1.0

    @property
    def jensen_mirror(self):
        return "burg"

    @property
    def background(self):
        return 0.0, 1.0, 0.0

    @property
    def convex_background(self):
        return 0.0, 0.0

    @staticmethod
    def value(x, m, p):
        return m - x * log(m + EPS)

    @staticmethod
    def derivative(x, m, p):
        return 1.0 - x / (m + EPS)

    @staticmethod
    def convex_derivative(x, m, p):
        return -x / (m + EPS)

    def simulate(self, m, rng):
        return rng.poisson(m)
