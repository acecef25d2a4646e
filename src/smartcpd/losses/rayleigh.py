"""Nonnegative magnitudes, such as amplitudes and speeds."""

import math
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import log
from smartcpd.losses.base import EPS, Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import TINY, rayleigh_tails

HALF_PI = 1.5707963267948966
QUARTER_PI = 0.7853981633974483


@dataclass(frozen=True)
class Rayleigh(Loss):
    """Magnitudes of two-dimensional noise: amplitudes, wind speeds, wave heights.

    Distribution: x ~ Rayleigh with mean m.  Link: identity.

    l(x, m) = 2 log(m + eps) + (pi/4) (x / (m + eps))²;
    derivative 2 / (m + eps) - (pi/2) x² / (m + eps)³.  Domain: m >= 0.

    Matched mirror map: power(-2), through the convex part (pi/4) (x / (m + eps))².

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("rayleigh")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -8.5664
    """

    name = "rayleigh"
    data = Data.NONNEGATIVE
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"
    dispersion = Dispersion.FIXED
    has_typical_data = True

    @property
    def jensen_mirror(self):
        return "power(-2)"

    @property
    def homogeneity(self):
        return 0.0

    def unit_shift(self, unit, mean):
        return 2.0 * math.log(unit)

    @property
    def allows_zeros(self):
        return False

    @staticmethod
    def value(x, m, p):
        u = m + EPS
        q = x / u
        return 2.0 * log(u) + QUARTER_PI * q * q

    @staticmethod
    def derivative(x, m, p):
        r = 1.0 / (m + EPS)
        q = x * r
        return r * (2.0 - HALF_PI * q * q)

    @staticmethod
    def convex_derivative(x, m, p):
        r = 1.0 / (m + EPS)
        q = x * r
        return -r * (HALF_PI * q * q)

    def best_model(self, x):
        # The loss is linear in x², so that its best fit is the root of a mean square, not a mean.
        return 0.5 * math.sqrt(math.pi) * np.asarray(x, dtype=np.float64)

    def typical_data(self, m):
        return 2.0 / np.sqrt(np.pi) * m

    def variance(self, mean):
        return (4.0 / np.pi - 1.0) * np.maximum(mean, EPS) ** 2

    def log_base(self, x, dispersion):
        return np.log(np.maximum(x, TINY)) + np.log(HALF_PI)

    def tails(self, x, m, dispersion):
        return rayleigh_tails(x, np.maximum(m, TINY) / np.sqrt(np.pi / 2))

    def simulate(self, m, rng, *, dispersion=None):
        return rng.rayleigh(m / np.sqrt(np.pi / 2))
