"""Least squares."""

from dataclasses import dataclass

import numpy as np

from smartcpd.losses.base import Data, Domain, Loss


@dataclass(frozen=True)
class Gaussian(Loss):
    """Real measurements with additive noise of one size.

    Distribution: x ~ Normal(m, sigma²).  Link: identity.

    l(x, m) = (x - m)² / 2;  derivative m - x.  Domain: m real.

    Matched mirror map: quadratic (Jensen steps also need nonnegative factors).

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("gaussian")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -0.5
    """

    name = "gaussian"
    data = Data.REAL
    domain = Domain.REAL

    @property
    def divergence(self):
        return 2.0

    @property
    def jensen_mirror(self):
        return "quadratic"

    @property
    def background(self):
        return 0.0, 0.0, 1.0

    @property
    def convex_background(self):
        return 0.0, 1.0

    @staticmethod
    def value(x, m, p):
        return 0.5 * (x - m) * (x - m)

    @staticmethod
    def derivative(x, m, p):
        return m - x

    @staticmethod
    def convex_derivative(x, m, p):
        return m

    def simulate(self, m, rng, sigma=1.0):
        return np.asarray(m) + sigma * rng.standard_normal(np.shape(m))
