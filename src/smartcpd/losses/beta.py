"""The beta-divergence, a family between the gamma, poisson and gaussian losses."""

from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.elementary import exp, log
from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import EPS, Data, Domain, Loss


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
    data = Data.NONNEGATIVE
    domain = Domain.NONNEGATIVE
    default_mirror = "entropy"

    def __post_init__(self):
        if not np.isfinite(self.beta):
            raise InvalidParameterError(f"beta must be a finite number; got {self.beta!r}.")

    @property
    def divergence(self):
        return float(self.beta)

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

    @staticmethod
    def derivative(x, m, p):
        u = m + EPS
        return exp((p[0] - 2.0) * log(u)) * (u - x)

    @staticmethod
    def convex_derivative(x, m, p):
        # Between 1 and 2 the whole loss is convex; this part and the quadratic map reproduce the
        # minimiser of its Jensen bound, the multiplicative update with exponent 1.
        beta = p[0]
        power = exp((beta - 2.0) * log(m + EPS))
        return -x * power if beta <= 1.0 else (m + EPS) * power

    def simulate(self, m, rng, dispersion=0.1):
        """Gamma draws with mean m and variance dispersion * m^(2 - beta)."""
        m = np.maximum(m, EPS)
        return rng.gamma(m**self.beta / dispersion, dispersion * m ** (1.0 - self.beta))
