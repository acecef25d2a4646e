"""Counts that vary more than Poisson counts."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import log
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import tails_of

LOWEST_R = 1e-3


@dataclass(frozen=True)
class NegativeBinomial(Loss):
    """Over-dispersed counts: the variance is mean + mean² / r.

    Distribution: x ~ NegativeBinomial(r, 1 / (1 + m)), with mean r m.  Link: odds.

    l(x, m) = (r + x) log(1 + m) - x log(m + eps);
    derivative (r + x) / (1 + m) - x / (m + eps).  Domain: m >= 0.

    Matched mirror map: burg, through the convex part -x log(m + eps).

    Parameters
    ----------
    r : float
        The dispersion, above 0: the smaller, the wider counts scatter.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("negative-binomial(2.0)")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    0.0
    """

    r: float

    name = "negative-binomial"
    spelled = "negative-binomial(1)"
    data = Data.COUNTS
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"
    dispersion = Dispersion.FIXED
    has_typical_data = True

    def __post_init__(self):
        if not self.r > 0:
            raise InvalidParameterError(f"r must be positive; got {self.r!r}.")

    @property
    def jensen_mirror(self):
        return "burg"

    @property
    def convex_background(self):
        return 0.0, 0.0

    @staticmethod
    def taylor_at_zero(p):
        return p[0], -p[0]

    @staticmethod
    def value(x, m, p):
        return (p[0] + x) * log(1.0 + m) - x * log(m + EPS)

    @staticmethod
    def derivative(x, m, p):
        return (p[0] + x) / (1.0 + m) - x / (m + EPS)

    @staticmethod
    def convex_derivative(x, m, p):
        return -x / (m + EPS)

    @staticmethod
    def mean(m, p):
        return p[0] * m

    def link(self, mean):
        return mean / self.r

    @property
    def mean_scale(self):
        return self.r

    @property
    def overdispersion(self):
        return 1.0 / self.r

    def variance(self, mean):
        return np.maximum(mean + mean * mean / self.r, EPS)

    def square_variance(self, v):
        return v * v * (2.0 + 6.0 / self.r) + v

    def log_base(self, x, dispersion):
        from scipy.special import gammaln

        return gammaln(x + self.r) - gammaln(self.r) - gammaln(x + 1.0)

    def tails(self, x, m, dispersion):
        from scipy import stats

        return tails_of(stats.nbinom(self.r, 1.0 / (1.0 + np.maximum(m, 0.0))), x)

    @classmethod
    def likeliest(cls, x, mean, weights, highest):
        """The loss whose r makes counts with these means most likely; r is ``highest`` at most."""
        from scipy import optimize, special

        kinds, where = np.unique(x, return_inverse=True)
        counts = np.bincount(where, weights=weights)
        total = float(weights.sum())

        def cost(log_r):
            r = math.exp(log_r)
            of_x = special.gammaln(kinds + r) - special.gammaln(r)
            of_mean = (x + r) * np.log1p(mean / r) + x * math.log(r)
            return float(weights @ of_mean - counts @ of_x) / total

        bounds = (math.log(LOWEST_R), math.log(highest))
        found = optimize.minimize_scalar(
            cost, bounds=bounds, method="bounded", options={"xatol": 1e-3}
        )
        return cls(math.exp(float(found.x)))

    def simulate(self, m, rng, *, dispersion=None):
        return rng.negative_binomial(self.r, 1.0 / (1.0 + m))
