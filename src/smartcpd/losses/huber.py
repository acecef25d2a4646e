"""Least squares that forgives outliers."""

import math
from dataclasses import dataclass, replace

import numpy as np

from smartcpd.errors import InvalidParameterError
from smartcpd.losses.base import Data, Dispersion, Domain, Loss


@dataclass(frozen=True)
class Huber(Loss):
    """Real measurements with some gross errors: quadratic near, linear beyond delta.

    Distribution: x = m + noise of density exp(-l / dispersion), up to a factor: normal in the
    middle with exponential tails.  Link: identity.

    ``l(x, m) = (x - m)² / 2 where |x - m| <= delta, else delta |x - m| - delta² / 2``;
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
    convex = True
    dispersion = Dispersion.OPEN

    def __post_init__(self):
        if not self.delta > 0:
            raise InvalidParameterError(f"delta must be positive; got {self.delta!r}.")

    @property
    def jensen_mirror(self):
        return "quadratic"

    @property
    def homogeneity(self):
        return 2.0

    def in_units(self, unit):
        return replace(self, delta=self.delta / unit)

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

    def variance(self, mean):
        return np.ones_like(mean)

    def log_base(self, x, dispersion):
        return np.full_like(x, -math.log(sum(self._masses(dispersion))))

    def tails(self, x, m, dispersion):
        from scipy import special

        sigma = math.sqrt(dispersion)
        distance = np.abs(x - m)
        middle, beyond = self._masses(dispersion)
        whole = sigma * math.sqrt(2.0 * math.pi)
        near = whole * (
            special.ndtr(-np.minimum(distance, self.delta) / sigma)
            - special.ndtr(-self.delta / sigma)
        )
        far = np.exp(-np.maximum(distance - self.delta, 0.0) * self.delta / dispersion)
        tail = (near + 0.5 * beyond * far) / (middle + beyond)
        return np.where(x < m, tail, 1.0 - tail), np.where(x < m, 1.0 - tail, tail)

    def _masses(self, dispersion):
        """The integral of exp(-l / dispersion) within delta, and that beyond on both sides."""
        from scipy import special

        sigma = math.sqrt(dispersion)
        middle = sigma * math.sqrt(2.0 * math.pi) * (1.0 - 2.0 * special.ndtr(-self.delta / sigma))
        beyond = 2.0 * dispersion / self.delta * math.exp(-(self.delta**2) / (2.0 * dispersion))
        return float(middle), beyond

    def estimate_dispersion(self, evidence):
        # That under which exp(-l / dispersion) is the likeliest density.
        from scipy.optimize import minimize_scalar

        mean_loss = max(evidence.mean_loss, 1e-12 * self.delta**2)

        def cost(log_dispersion):
            dispersion = math.exp(log_dispersion)
            return math.log(sum(self._masses(dispersion))) + mean_loss / dispersion

        centre = math.log(2.0 * mean_loss)
        best = minimize_scalar(cost, bounds=(centre - 5.0, centre + 15.0), method="bounded")
        return math.exp(best.x)

    def simulate(self, m, rng, outliers=0.05, *, dispersion=None):
        """Draw data with unit normal noise, some of it ten times larger.

        Given a dispersion, the noise is that of the distribution that this loss names.

        Parameters
        ----------
        m : ndarray
            Model values, one a cell.
        rng : numpy.random.Generator
            The source of random numbers.
        outliers : float
            The share of cells whose noise is ten times larger.
        dispersion : float, optional
            The dispersion of the distribution that this loss names, which then takes the place of
            the other.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> rng = np.random.default_rng(0)
        >>> x = losses.get("huber(1)").simulate(np.zeros(10_000), rng, outliers=0.1)
        >>> round(float(np.mean(np.abs(x) > 5.0)), 2)
        0.06
        """
        if dispersion is not None:
            return m + self._noise(np.shape(m), rng, dispersion)
        noise = rng.standard_normal(np.shape(m))
        return m + np.where(rng.random(np.shape(m)) < outliers, 10.0 * noise, noise)

    def _noise(self, shape, rng, dispersion):
        from scipy import special

        sigma = math.sqrt(dispersion)
        middle, beyond = self._masses(dispersion)
        outer = special.ndtr(-self.delta / sigma)
        near = sigma * special.ndtri(rng.uniform(outer, 1.0 - outer, shape))
        far = self.delta + rng.exponential(dispersion / self.delta, shape)
        far *= rng.choice([-1.0, 1.0], shape)
        return np.where(rng.random(shape) * (middle + beyond) < middle, near, far)
