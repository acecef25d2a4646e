"""Counts that vary more than Poisson counts."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from smartcpd._common.registry import AUTO
from smartcpd._kernels.elementary import log
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import negative_binomial_tails


@dataclass(frozen=True)
class NegativeBinomial(Loss):
    """Over-dispersed counts: the variance is mean + mean² / r.

    Distribution: x ~ NegativeBinomial(r, 1 / (1 + m)), with mean r m.  Link: odds.

    l(x, m) = (r + x) log(1 + m) - x log(m + eps);
    derivative (r + x) / (1 + m) - x / (m + eps).  Domain: m >= 0.

    Matched mirror map: burg, through the convex part -x log(m + eps).

    Parameters
    ----------
    r : float or "auto"
        The dispersion, above 0: the smaller, the wider counts scatter. "auto", the default, lets a
        fit find it by maximum likelihood; the loss of its model has the r that was found.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("negative-binomial(2.0)")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    0.0
    """

    r: Any = AUTO

    name = "negative-binomial"
    spelled = "negative-binomial(1)"
    data = Data.COUNTS
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"
    dispersion = Dispersion.FIXED
    has_typical_data = True
    limit = "poisson"
    bends_down = True

    def __post_init__(self):
        number = isinstance(self.r, Real) and not isinstance(self.r, bool)
        if not self.is_open and not (number and self.r > 0):
            raise InvalidParameterError(
                f"r must be positive; got {self.r!r}. With 'auto' a fit finds it."
            )

    @property
    def pair(self):
        if self.is_open:
            raise InvalidParameterError(
                f"Loss '{self}' has no r before a fit has found it. Give one here, such as "
                "'negative-binomial(2)'."
            )
        return super().pair

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
        return negative_binomial_tails(x, self.r, 1.0 / (1.0 + np.maximum(m, 0.0)))

    def simulate(self, m, rng, *, dispersion=None):
        return rng.negative_binomial(self.r, 1.0 / (1.0 + m))
