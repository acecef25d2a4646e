"""Counts whose mean is a sum of components."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import TINY, poisson_tails


@dataclass(frozen=True)
class PoissonCounts(Loss):
    """What is known of Poisson counts, whatever their link.

    Amounts that are no whole numbers scatter like counts in units of the dispersion.
    """

    data = Data.COUNTS
    dispersion = Dispersion.OF_AMOUNTS
    has_typical_data = True

    def variance(self, mean):
        return np.maximum(mean, EPS)

    def square_variance(self, v):
        return 2.0 * v * v + v

    def log_base(self, x, dispersion):
        from scipy.special import gammaln

        return -gammaln(x / dispersion + 1.0) - (x / dispersion + 1.0) * np.log(dispersion)

    def tails(self, x, m, dispersion):
        mean = np.maximum(self.mean(m, self.params), 0.0)
        # A quotient that rounding has left just beside a whole number is that number.
        return poisson_tails(np.round(x / dispersion, 9), mean / dispersion)

    def simulate(self, m, rng, *, dispersion=None):
        mean = self.mean(m, self.params)
        if dispersion in (None, 1.0):
            return rng.poisson(mean)
        return dispersion * rng.poisson(mean / dispersion)


@dataclass(frozen=True)
class Poisson(PoissonCounts):
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
    domain = Domain.NONNEGATIVE
    convex = True
    default_mirror = "entropy"
    alternatives = ("negative-binomial",)
    tolerant = "negative-binomial(r)"

    @property
    def divergence(self):
        return 1.0

    @property
    def homogeneity(self):
        return 1.0

    def unit_shift(self, unit, mean):
        return -unit * math.log(unit) * mean

    @property
    def events_are_logs(self):
        return True

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

    def proximal(self, x, v, stiffness):
        # The positive root of stiffness u² + b u - x, in the form that does not cancel.
        b = 1.0 - stiffness * (v + EPS)
        root = np.sqrt(b * b + 4.0 * stiffness * x)
        large = (root - b) / (2.0 * stiffness)
        u = np.where(b > 0, 2.0 * x / np.maximum(root + b, TINY), large)
        return np.maximum(u - EPS, 0.0)
