"""Least squares."""

from dataclasses import dataclass

import numpy as np

from smartcpd.losses.base import Data, Dispersion, Domain, Loss
from smartcpd.losses.tails import normal_tails


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
    convex = True
    dispersion = Dispersion.OPEN
    has_typical_data = True
    tolerant = "huber(delta)"

    @property
    def divergence(self):
        return 2.0

    @property
    def homogeneity(self):
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

    def variance(self, mean):
        return np.ones_like(mean)

    def log_base(self, x, dispersion):
        return np.full_like(x, -0.5 * np.log(2.0 * np.pi * dispersion))

    def tails(self, x, m, dispersion):
        return normal_tails(x, m, np.sqrt(dispersion))

    def estimate_dispersion(self, evidence):
        # Pearson's estimate, but exact: no sample of cells is needed.
        return 2.0 * evidence.mean_loss * evidence.correction

    def simulate(self, m, rng, sigma=1.0, *, dispersion=None):
        """Draw data whose model is m, with normal noise.

        Parameters
        ----------
        m : ndarray
            Model values, one a cell.
        rng : numpy.random.Generator
            The source of random numbers.
        sigma : float
            The standard deviation of the noise.
        dispersion : float, optional
            The variance of the noise, in place of sigma.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> rng = np.random.default_rng(0)
        >>> x = losses.get("gaussian").simulate(np.full(10_000, 5.0), rng, sigma=0.5)
        >>> round(float(x.mean()), 1), round(float(x.std()), 1)
        (5.0, 0.5)
        """
        if dispersion is not None:
            sigma = np.sqrt(dispersion)
        return np.asarray(m) + sigma * rng.standard_normal(np.shape(m))
