"""Yes/no events whose odds are a sum of components."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import CERTAIN, EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import bernoulli_tails


@dataclass(frozen=True)
class BernoulliEvents(Loss):
    """The facts about yes/no events that hold whatever the link of their probability."""

    data = Data.BINARY
    dispersion = Dispersion.FIXED
    has_typical_data = True

    def variance(self, mean):
        return np.maximum(mean * (1.0 - mean), EPS)

    def square_variance(self, v):
        return np.maximum(v * (1.0 - 4.0 * v), 0.0)

    def log_base(self, x, dispersion):
        return np.zeros_like(x)

    def tails(self, x, m, dispersion):
        return bernoulli_tails(x, self.mean(m, self.params))


@dataclass(frozen=True)
class BernoulliOdds(BernoulliEvents):
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
    domain = Domain.NONNEGATIVE
    scales_with_exposure = True  # odds, and so probabilities as long as they are small
    default_mirror = "entropy"
    alternatives = ("bernoulli-logit",)

    @property
    def events_are_logs(self):
        return True

    @property
    def jensen_mirror(self):
        return "burg"

    @property
    def pseudo_count_slope(self):
        return 1.0

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

    def certain(self, m):
        # Odds of 0 are no sign of trouble: rows in which nothing happened have them.
        return m > math.exp(CERTAIN)

    def simulate(self, m, rng, *, dispersion=None):
        return (rng.random(m.shape) * (1.0 + m) < m).astype("uint8")
