"""Yes/no events whose odds are a sum of components."""

from dataclasses import dataclass

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import EPS, Data, Domain, Loss


@dataclass(frozen=True)
class BernoulliOdds(Loss):
    """Yes/no events: each component adds to the odds that the answer is yes.

    Distribution: x ~ Bernoulli(m / (1 + m)).  Link: odds.

    l(x, m) = log(1 + m) - x log(m + eps);  derivative 1 / (1 + m) - x / (m + eps).
    Domain: m >= 0.

    Matched mirror map: burg, through the convex part -x log(m + eps).

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("bernoulli-odds")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -1.3333
    """

    name = "bernoulli-odds"
    data = Data.BINARY
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"

    @property
    def jensen_mirror(self):
        return "burg"

    @property
    def convex_background(self):
        return 0.0, 0.0

    @staticmethod
    def taylor_at_zero(p):
        return 1.0, -1.0

    @staticmethod
    def value(x, m, p):
        # One logarithm for both terms: x is 0 or 1.
        return log((1.0 + m) / (m + EPS if x > 0.5 else 1.0))

    @staticmethod
    def derivative(x, m, p):
        return 1.0 / (1.0 + m) - x / (m + EPS)

    @staticmethod
    def convex_derivative(x, m, p):
        return -x / (m + EPS)

    @staticmethod
    def mean(m, p):
        return m / (1.0 + m)

    def link(self, mean):
        return mean / max(1.0 - mean, 1e-6)

    def simulate(self, m, rng):
        return (rng.random(m.shape) * (1.0 + m) < m).astype("uint8")
