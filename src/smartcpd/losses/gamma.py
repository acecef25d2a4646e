"""The loss of multiplicative noise: Itakura-Saito divergence."""

from dataclasses import dataclass

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import EPS, Data, Domain, Loss


@dataclass(frozen=True)
class Gamma(Loss):
    """Positive measurements whose error is proportional to their size.

    Distribution: x ~ Gamma with mean m.  Link: identity.

    l(x, m) = x / (m + eps) + log(m + eps);  derivative (m + eps - x) / (m + eps)².
    Domain: m >= 0.

    Matched mirror map: power(-1), through the convex part x / (m + eps).

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("gamma")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -2.0
    """

    name = "gamma"
    data = Data.NONNEGATIVE
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"

    @property
    def divergence(self):
        return 0.0

    @property
    def jensen_mirror(self):
        return "power(-1)"

    @property
    def allows_zeros(self):
        return False

    @staticmethod
    def value(x, m, p):
        u = m + EPS
        return x / u + log(u)

    @staticmethod
    def derivative(x, m, p):
        u = m + EPS
        return (u - x) / (u * u)

    @staticmethod
    def convex_derivative(x, m, p):
        u = m + EPS
        return -x / (u * u)

    def simulate(self, m, rng, shape=1.0):
        return m * rng.gamma(shape, 1.0 / shape, m.shape)
