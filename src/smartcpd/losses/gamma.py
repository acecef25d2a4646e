"""The loss of multiplicative noise: Itakura-Saito divergence."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import TINY, gamma_tails

LEAST_EXCESS = 1e-10
"""Half of a mean deviance that data without noise leaves, by rounding."""


@dataclass(frozen=True)
class Gamma(Loss):
    """Positive measurements whose error is proportional to their size.

    Distribution: x ~ Gamma with mean m and variance dispersion * m².  Link: identity.

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
    dispersion = Dispersion.OPEN
    has_typical_data = True
    alternatives = ("gaussian",)

    @property
    def divergence(self):
        return 0.0

    @property
    def homogeneity(self):
        return 0.0

    def unit_shift(self, unit, mean):
        return math.log(unit)

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

    def variance(self, mean):
        return np.maximum(mean, EPS) ** 2

    def log_base(self, x, dispersion):
        from scipy.special import gammaln

        shape = 1.0 / dispersion
        constant = shape * np.log(shape) - gammaln(shape)
        return constant + (shape - 1.0) * np.log(np.maximum(x, TINY))

    def tails(self, x, m, dispersion):
        return gamma_tails(x, 1.0 / dispersion, np.maximum(m, TINY) * dispersion)

    def likely_dispersion(self, evidence):
        # One over the shape k that solves log k - psi(k) = half of the mean deviance.
        from scipy import optimize, special

        excess = (evidence.mean_loss - 1.0 - evidence.mean_log) * evidence.correction
        excess = max(excess, LEAST_EXCESS)

        def gap(log_k):
            return float(log_k - special.digamma(math.exp(log_k)) - excess)

        # The left side lies between 1 / (2 k) and 1 / k.
        low, high = math.log(0.4 / excess), math.log(1.1 / excess)
        return math.exp(-float(optimize.brentq(gap, low, high)))

    def simulate(self, m, rng, shape=1.0, *, dispersion=None):
        """Draw data whose model is m, with errors in proportion to it.

        Parameters
        ----------
        m : ndarray
            Model values, one a cell.
        rng : numpy.random.Generator
            The source of random numbers.
        shape : float
            The shape of the gamma distribution: the variance is m² / shape.
        dispersion : float, optional
            One over the shape, in place of that.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> rng = np.random.default_rng(0)
        >>> x = losses.get("gamma").simulate(np.full(10_000, 5.0), rng, shape=100.0)
        >>> round(float(x.mean()), 1), round(float(x.std()), 1)
        (5.0, 0.5)
        """
        if dispersion is not None:
            shape = 1.0 / dispersion
        # A draw that underflows is still no zero, which cannot be observed.
        return np.maximum(m * rng.gamma(shape, 1.0 / shape, m.shape), TINY)
