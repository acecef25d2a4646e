"""Both tails of distributions: P(X <= x) and P(X >= x).

SciPy's special functions are called as they are: its distributions, which call them in turn, take
half a second to import.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

TINY = np.finfo(float).tiny
"""A mean that is as good as zero for distributions that have none at zero."""


class Tails(NamedTuple):
    """P(X <= x) and P(X >= x); those of a discrete distribution both include x itself."""

    below: np.ndarray
    above: np.ndarray


def normal_tails(x: np.ndarray, mean: np.ndarray, deviation: float) -> Tails:
    """The tails of a normal distribution."""
    from scipy.special import ndtr

    z = (x - mean) / deviation
    return Tails(ndtr(z), ndtr(-z))


def gamma_tails(x: np.ndarray, shape: np.ndarray | float, scale: np.ndarray) -> Tails:
    """The tails of a gamma distribution."""
    from scipy.special import gammainc, gammaincc

    z = np.maximum(x, 0.0) / scale
    return Tails(gammainc(shape, z), gammaincc(shape, z))


def rayleigh_tails(x: np.ndarray, scale: np.ndarray) -> Tails:
    """The tails of a Rayleigh distribution."""
    # Beyond 1e150 the square has no number, and nothing is left of the tail.
    half = -0.5 * np.minimum(np.maximum(x, 0.0) / scale, 1e150) ** 2
    return Tails(-np.expm1(half), np.exp(half))


def poisson_tails(x: np.ndarray, mean: np.ndarray) -> Tails:
    """The tails of a Poisson distribution."""
    from scipy.special import pdtr, pdtrc

    k, least = np.floor(x), np.ceil(x) - 1.0
    below = np.where(k < 0, 0.0, pdtr(np.maximum(k, 0.0), mean))
    above = np.where(least < 0, 1.0, pdtrc(np.maximum(least, 0.0), mean))
    return Tails(below, above)


def bernoulli_tails(x: np.ndarray, chance: np.ndarray) -> Tails:
    """The tails of events that happen with a chance."""
    below = np.where(x < 0, 0.0, np.where(x < 1, 1.0 - chance, 1.0))
    above = np.where(x <= 0, 1.0, np.where(x <= 1, chance, 0.0))
    return Tails(below, above)


def negative_binomial_tails(x: np.ndarray, r: float, success: np.ndarray) -> Tails:
    """The tails of the number of failures before r successes."""
    from scipy.special import betainc

    k, least = np.floor(x), np.ceil(x) - 1.0
    below = np.where(k < 0, 0.0, betainc(r, np.maximum(k, 0.0) + 1.0, success))
    above = np.where(least < 0, 1.0, betainc(np.maximum(least, 0.0) + 1.0, r, 1.0 - success))
    return Tails(below, above)
