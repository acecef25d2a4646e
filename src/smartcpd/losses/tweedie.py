"""Tweedie's compound of Poisson and gamma: a Poisson number of gamma amounts, added up.

Its variance is dispersion * mean^power, for a power between 1 and 2; zero is a value of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SPREAD_OF_COUNTS = 12.0
"""Standard deviations of a Poisson count beyond which its probability is nothing."""
MANY_EVENTS = 500
"""The number of expected events from which on the saddlepoint replaces the density."""


class Compound(NamedTuple):
    """The number of amounts and the gamma distribution of each."""

    rate: np.ndarray
    shape: float
    scale: np.ndarray

    @classmethod
    def of(cls, mean: np.ndarray, dispersion: float, power: float) -> Compound:
        return cls(
            mean ** (2.0 - power) / (dispersion * (2.0 - power)),
            (2.0 - power) / (power - 1.0),
            dispersion * (power - 1.0) * mean ** (power - 1.0),
        )

    def tails(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P(X <= x) and P(X >= x), conditioned on the number of amounts."""
        from scipy import special, stats

        below = np.exp(-self.rate) * (x >= 0)
        at_zero = np.where(x == 0, below, 0.0)
        amount = np.maximum(x, 0.0) / self.scale
        for n in range(1, _enough(float(self.rate.max(initial=0.0)))):
            chance = stats.poisson.pmf(n, self.rate)
            below += chance * special.gammainc(n * self.shape, amount) * (x > 0)
        return below, np.clip(1.0 - below + at_zero, 0.0, 1.0)

    def draws(self, rng: np.random.Generator) -> np.ndarray:
        """One value for each mean: the sum of n gamma amounts has n times their shape."""
        n = rng.poisson(self.rate)
        return np.where(n > 0, rng.gamma(self.shape * np.maximum(n, 1), self.scale), 0.0)


def log_base(x: np.ndarray, own_losses: np.ndarray, dispersion: float, beta: float) -> np.ndarray:
    """The logarithm of the density of x > 0 less -l(x, m) / dispersion, for power 2 - beta.

    It is the series of Dunn and Smyth (2005). ``own_losses`` are l(x, x), which the saddlepoint
    needs where the series would be long.
    """
    from scipy import special

    shape = beta / (1.0 - beta)
    events = x**beta / (dispersion * beta)  # near which number the terms are largest
    many = events > MANY_EVENTS
    found = np.zeros_like(x)
    spread = 2.0 * np.pi * dispersion * x[many] ** (2.0 - beta)
    found[many] = own_losses[many] / dispersion - 0.5 * np.log(spread)
    few = (x > 0) & ~many
    log_x = np.log(x[few])
    log_z = shape * (log_x - np.log(1.0 - beta)) - (1.0 + shape) * np.log(dispersion)
    log_z -= np.log(beta)
    total = np.full(log_x.size, -np.inf)
    for j in range(1, _enough(float(events[few].max(initial=0.0)))):
        term = j * log_z - special.gammaln(j + 1.0) - special.gammaln(j * shape)
        total = np.logaddexp(total, term)
    found[few] = total - log_x
    return found


def _enough(events: float) -> int:
    """A number of events that a Poisson count with this mean does not reach."""
    return int(events + SPREAD_OF_COUNTS * np.sqrt(events) + 2 * SPREAD_OF_COUNTS)
