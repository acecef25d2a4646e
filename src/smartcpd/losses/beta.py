"""The beta-divergence, a family between the gamma, poisson and gaussian losses."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._common.distinct import distinct
from smartcpd._kernels.elementary import exp, log
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import tweedie
from smartcpd.losses.base import EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.gamma import Gamma
from smartcpd.losses.gaussian import Gaussian
from smartcpd.losses.poisson import Poisson
from smartcpd.losses.tails import TINY, gamma_tails

EXACT = {0.0: Gamma(), 1.0: Poisson(), 2.0: Gaussian()}
"""Losses that this one is for some beta, up to a constant in x."""
PLAIN = {0.0: "_at_0", 0.5: "_at_half", 1.0: "_at_1"}
"""Values of beta whose derivatives need no power, with the endings of their formulas' names."""


@dataclass(frozen=True)
class Beta(Loss):
    """Nonnegative measurements whose variance grows as m^(2 - beta).

    Distribution: none in general (Tweedie where one exists).  Link: identity.

    l(x, m) = u^beta / beta - x u^(beta-1) / (beta-1) with u = m + eps;
    derivative u^(beta-2) (u - x).  Domain: m >= 0.
    beta = 0, 1, 2 are the gamma, poisson and gaussian losses, up to a constant in x.

    Matched mirror map: power(beta-1) below 1, burg at 1, quadratic from there to 2,
    power(beta) above.

    Parameters
    ----------
    beta : float
        The exponent: the variance grows as m^(2 - beta).

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("beta(0.5)")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -1.4142
    """

    beta: float

    name = "beta"
    spelled = "beta(0.5)"
    data = Data.NONNEGATIVE
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"
    dispersion = Dispersion.OPEN
    has_typical_data = True

    def __post_init__(self):
        if not np.isfinite(self.beta):
            raise InvalidParameterError(f"beta must be a finite number; got {self.beta!r}.")

    @property
    def divergence(self):
        return float(self.beta)

    @property
    def homogeneity(self):
        return float(self.beta)

    def unit_shift(self, unit, mean):
        exact = EXACT.get(float(self.beta))
        return 0.0 if exact is None else exact.unit_shift(unit, mean)

    @property
    def convex(self):
        return 1 <= self.beta <= 2

    @property
    def jensen_mirror(self):
        if self.beta < 1:
            return f"power({float(self.beta) - 1!r})"
        if self.beta == 1:
            return "burg"
        return "quadratic" if self.beta <= 2 else f"power({float(self.beta)!r})"

    @property
    def allows_zeros(self):
        return self.beta > 0

    @property
    def background(self):
        # l(0, m) = u^beta / beta with u = m + eps.
        exact = {1.0: (EPS, 1.0, 0.0), 2.0: (0.5 * EPS**2, EPS, 1.0)}
        return exact.get(float(self.beta))

    @property
    def convex_background(self):
        if self.beta <= 1:
            return 0.0, 0.0
        return (EPS, 1.0) if self.beta == 2 else None

    @staticmethod
    def value(x, m, p):
        beta = p[0]
        u = m + EPS
        y = log(u)
        if beta == 0.0:
            return x / u + y
        if beta == 1.0:
            return u - x * y
        return exp(beta * y) / beta - x * exp((beta - 1.0) * y) / (beta - 1.0)

    def variant(self, formula):
        return f"_{formula}{PLAIN[self.beta]}" if self.beta in PLAIN else formula

    @staticmethod
    def derivative(x, m, p):
        u = m + EPS
        return exp((p[0] - 2.0) * log(u)) * (u - x)

    @staticmethod
    def _derivative_at_0(x, m, p):
        """The derivative at beta = 0, without a general power."""
        u = m + EPS
        return (u - x) / (u * u)

    @staticmethod
    def _derivative_at_half(x, m, p):
        """The derivative at beta = 1/2, without a general power."""
        u = m + EPS
        return (u - x) / (u * math.sqrt(u))

    @staticmethod
    def _derivative_at_1(x, m, p):
        """The derivative at beta = 1, without a general power."""
        u = m + EPS
        return (u - x) / u

    @staticmethod
    def convex_derivative(x, m, p):
        # Between 1 and 2 the whole loss is convex; this part and the quadratic map reproduce the
        # minimiser of its Jensen bound, the multiplicative update with exponent 1.
        u = m + EPS
        power = exp((p[0] - 2.0) * log(u))
        return -x * power if p[0] <= 1.0 else u * power

    @staticmethod
    def _convex_derivative_at_0(x, m, p):
        """The derivative of the convex part at beta = 0, without a general power."""
        u = m + EPS
        return -x / (u * u)

    @staticmethod
    def _convex_derivative_at_half(x, m, p):
        """The derivative of the convex part at beta = 1/2, without a general power."""
        u = m + EPS
        return -x / (u * math.sqrt(u))

    @staticmethod
    def _convex_derivative_at_1(x, m, p):
        """The derivative of the convex part at beta = 1, without a general power."""
        return -x / (m + EPS)

    @property
    def has_density(self):
        # Beyond, it is an approximation, or that of the loss that has its own name.
        return self._is_compound

    @property
    def _is_compound(self):
        return 0.0 < self.beta < 1.0

    def variance(self, mean):
        return np.maximum(mean, EPS) ** (2.0 - self.beta)

    def log_base(self, x, dispersion):
        if self.beta in EXACT:
            base = EXACT[self.beta].log_base(x, dispersion)
            return base if self.beta < 2.0 else base - 0.5 * x**2 / dispersion
        if self._is_compound:
            kinds, which = distinct(x)
            own = self.values_at(kinds, kinds)
            base = tweedie.log_base(kinds, own, dispersion, self.beta)
            return base[which]
        positive = np.maximum(x, TINY)
        spread = np.log(2.0 * np.pi * dispersion) + (2.0 - self.beta) * np.log(positive)
        return np.where(x > 0, self.saturated(positive) / dispersion - 0.5 * spread, 0.0)

    def tails(self, x, m, dispersion):
        # Those of Tweedie's distribution where that is known, elsewhere those of a gamma
        # distribution of the same mean and variance.
        if self.beta in EXACT:
            return EXACT[self.beta].tails(x, m, dispersion)
        mean = np.maximum(m, TINY)
        if self._is_compound:
            return tweedie.Compound.of(mean, dispersion, 2.0 - self.beta).tails(x)
        scale = dispersion * mean ** (1.0 - self.beta)
        return gamma_tails(x, mean / scale, scale)

    def simulate(self, m, rng, dispersion=None):
        """Draw data with mean m and variance d m^(2 - beta), d being the dispersion.

        It comes from Tweedie's distribution for beta from 0 to 1, else from a gamma distribution,
        which has no negative values.

        Parameters
        ----------
        m : ndarray
            Model values, one a cell.
        rng : numpy.random.Generator
            The source of random numbers.
        dispersion : float, optional
            How widely the data scatters, 0.1 by default.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> rng = np.random.default_rng(0)
        >>> x = losses.get("beta(0.5)").simulate(np.full(10_000, 4.0), rng, dispersion=2.0)
        >>> round(float(x.mean())), round(float(x.var()))
        (4, 16)
        """
        d = 0.1 if dispersion is None else dispersion
        m = np.maximum(m, EPS)
        if self._is_compound:
            return tweedie.Compound.of(m, d, 2.0 - self.beta).draws(rng)
        if self.beta == 1.0:
            return EXACT[1.0].simulate(m, rng, dispersion=d)
        return np.maximum(rng.gamma(m**self.beta / d, d * m ** (1.0 - self.beta)), TINY)
