"""Least squares that forgives outliers."""

from dataclasses import dataclass

import numpy as np

from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import Data, Domain, Loss


@dataclass(frozen=True)
class Huber(Loss):
    """Real measurements with some gross errors: quadratic near, linear beyond delta.

    Distribution: x = m + noise, normal in the middle with double-exponential tails.
    Link: identity.

    l(x, m) = (x - m)² / 2 where |x - m| <= delta, else delta |x - m| - delta² / 2;
    derivative m - x, clipped to [-delta, delta].  Domain: m real.

    Matched mirror map: quadratic, through the curvature bound 1 (Jensen steps also need
    nonnegative factors).

    Parameters
    ----------
    delta : float
        The distance beyond which the loss is linear, above 0.

    Examples
    --------
    >>> from smartcpd import losses
    >>> loss = losses.get("huber(1.0)")
    >>> round(loss.derivative(1.0, 0.5, loss.params), 4)
    -0.5
    """

    delta: float = 1.0

    name = "huber"
    data = Data.REAL
    domain = Domain.REAL

    def __post_init__(self):
        if not self.delta > 0:
            raise InvalidParameterError(f"delta must be positive; got {self.delta!r}.")

    @property
    def jensen_mirror(self):
        return "quadratic"

    @property
    def convex_background(self):
        return 0.0, 1.0

    @staticmethod
    def value(x, m, p):
        e = abs(x - m)
        near = min(e, p[0])
        return near * (e - 0.5 * near)

    @staticmethod
    def derivative(x, m, p):
        return min(max(m - x, -p[0]), p[0])

    @staticmethod
    def convex_derivative(x, m, p):
        return m

    def simulate(self, m, rng, outliers=0.05):
        """Unit normal noise, some of it ten times larger."""
        noise = rng.standard_normal(np.shape(m))
        return m + np.where(rng.random(np.shape(m)) < outliers, 10.0 * noise, noise)
