"""Simulated data with known factors: the paper's experiments, at any size."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.factors import unit_columns
from smartcpd._common.model_cells import slabs
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss, get

Seed = int | np.random.Generator | None
Draw = Callable[[np.ndarray], np.ndarray]

_CUBE = (100, 100, 100)


class Planted(NamedTuple):
    """Simulated data, and the factors it was made from.

    Attributes
    ----------
    data : ndarray
        The data.
    factors : list of ndarray
        The factors, one a mode.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> planted = datasets.count((4, 3, 2), rank=2, random_state=0)
    >>> planted.data.shape, [A.shape for A in planted.factors]
    ((4, 3, 2), [(4, 2), (3, 2), (2, 2)])
    """

    data: np.ndarray
    factors: list[np.ndarray]


def count(
    shape: Sequence[int] = _CUBE,
    rank: int = 10,
    *,
    a_max: float = 0.5,
    outliers: float = 0.05,
    random_state: Seed = None,
) -> Planted:
    """Simulate Poisson counts whose means are a sum of components.

    Parameters
    ----------
    shape : sequence of int
        Two modes or more.
    rank : int
        Number of components.
    a_max : float
        Factors are uniform between 0 and a_max ...
    outliers : float
        ... but for this share of each column, which is redrawn between 0 and 10 a_max.
    random_state : int, Generator or None
        A seed, or a generator to draw from.

    Returns
    -------
    Planted
        Data in the smallest unsigned integers that hold it.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X, factors = datasets.count((4, 3, 2), rank=2, random_state=0)
    >>> X.dtype, X.shape
    (dtype('uint8'), (4, 3, 2))
    """
    shape, rank, rng = checked(shape, rank, random_state)
    factors = spiky_factors(shape, rank, a_max, outliers, rng)
    return Planted(_drawn_integers(get("poisson"), factors, rng), factors)


def binary(
    shape: Sequence[int] = _CUBE,
    rank: int = 20,
    *,
    a_max: float = 0.3,
    outliers: float = 0.05,
    random_state: Seed = None,
) -> Planted:
    """Simulate zeros and ones whose odds are a sum of components: P(x = 1) = m / (1 + m).

    At 100 x 100 x 100 and rank 20, a_max from 0.2 to 0.5 gives from 5 to 40 % ones.

    Parameters
    ----------
    shape, rank, a_max, outliers, random_state
        As for `count`.

    Returns
    -------
    Planted
        Data in uint8.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X, factors = datasets.binary((10, 10, 10), rank=3, random_state=0)
    >>> sorted(set(X.ravel().tolist()))
    [0, 1]
    """
    shape, rank, rng = checked(shape, rank, random_state)
    factors = spiky_factors(shape, rank, a_max, outliers, rng)
    return Planted(_drawn_integers(get("bernoulli-odds"), factors, rng), factors)


def gamma(
    shape: Sequence[int] = _CUBE, rank: int = 20, *, snr: float = 20.0, random_state: Seed = None
) -> Planted:
    """Simulate positive data with multiplicative gamma noise of mean 1 and variance 10^(-snr/10).

    Parameters
    ----------
    shape, rank, random_state
        As for `count`. The paper uses 300 x 300 x 300.
    snr : float
        Signal-to-noise ratio in decibels.

    Returns
    -------
    Planted
        Data in float64, factors uniform between 0 and 1.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X, factors = datasets.gamma((4, 3, 2), rank=2, random_state=0)
    >>> bool((X > 0).all())
    True
    """
    shape, rank, rng = checked(shape, rank, random_state)
    k = _power_ratio(snr)
    factors = [rng.random((size, rank)) for size in shape]
    return Planted(_drawn_floats(lambda m: m * rng.gamma(k, 1.0 / k, m.shape), factors), factors)


def simplex(
    shape: Sequence[int] = _CUBE,
    rank: int = 10,
    *,
    events: float | None = None,
    random_state: Seed = None,
) -> Planted:
    """Simulate a sum of products of distributions: every column of the factors sums to 1.

    Parameters
    ----------
    shape, rank, random_state
        As for `count`.
    events : float, optional
        The data is the model itself; or, with this, Poisson counts of so many events expected in
        all, scaled back so that their expectation is the model.

    Returns
    -------
    Planted
        Data in float64.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X, factors = datasets.simplex((4, 3, 2), rank=2, random_state=0)
    >>> round(float(X.sum()), 6)
    2.0
    """
    shape, rank, rng = checked(shape, rank, random_state)
    if events is not None:
        _check_positive("events", events)
    factors = [unit_columns(rng.random((size, rank)), norm=1)[0] for size in shape]
    if events is None:
        return Planted(_drawn_floats(lambda m: m, factors), factors)
    # Each component sums to 1 over all cells, so the model sums to the rank.
    scale = events / rank
    return Planted(_drawn_floats(lambda m: rng.poisson(m * scale) / scale, factors), factors)


def gaussian(
    shape: Sequence[int] = _CUBE,
    rank: int = 10,
    *,
    snr: float = 40.0,
    nonnegative: bool = True,
    random_state: Seed = None,
) -> Planted:
    """Simulate real data with additive normal noise.

    Parameters
    ----------
    shape, rank, random_state
        As for `count`.
    snr : float
        Mean square of the model over the variance of the noise, in decibels.
    nonnegative : bool
        Factors uniform between 0 and 1; standard normal if False. The noise has both signs.

    Returns
    -------
    Planted
        Data in float64.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X, factors = datasets.gaussian((4, 3, 2), rank=2, random_state=0)
    >>> X.dtype, X.shape
    (dtype('float64'), (4, 3, 2))
    """
    shape, rank, rng = checked(shape, rank, random_state)
    draw = rng.random if nonnegative else rng.standard_normal
    factors = [draw((size, rank)) for size in shape]
    # The sum of all squared model values is computed from Gram matrices, without the tensor.
    power = np.prod([A.T @ A for A in factors], axis=0).sum() / math.prod(shape)
    sigma = math.sqrt(power / _power_ratio(snr))
    noisy = _drawn_floats(lambda m: m + sigma * rng.standard_normal(m.size), factors)
    return Planted(noisy, factors)


def spiky_factors(
    shape: Sequence[int], rank: int, a_max: float, outliers: float, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw uniform columns with a few entries of a scale ten times larger."""
    _check_positive("a_max", a_max)
    if not 0 <= outliers <= 1:
        raise InvalidParameterError(f"outliers must be between 0 and 1; got {outliers!r}.")
    factors = []
    for size in shape:
        A = rng.uniform(0.0, a_max, (size, rank))
        n_outliers = round(outliers * size)
        for column in A.T:
            chosen = rng.choice(size, n_outliers, replace=False)
            column[chosen] = rng.uniform(0.0, 10.0 * a_max, n_outliers)
        factors.append(A)
    return factors


def _drawn_integers(
    loss: Loss, factors: Sequence[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Draw data in the smallest unsigned integers; no wider tensor of full size ever exists."""
    data = np.empty([len(A) for A in factors], np.uint8)
    for where, m in slabs(factors):
        drawn = loss.simulate(m, rng)
        smallest = np.min_scalar_type(drawn.max())
        if smallest.itemsize > data.itemsize:
            data = data.astype(smallest)
        data.reshape(-1)[where] = drawn
    return data


def _drawn_floats(draw: Draw, factors: Sequence[np.ndarray]) -> np.ndarray:
    data = np.empty([len(A) for A in factors])
    flat = data.reshape(-1)
    for where, m in slabs(factors):
        flat[where] = draw(m)
    return data


def checked(
    shape: Any, rank: Any, random_state: Seed
) -> tuple[tuple[int, ...], int, np.random.Generator]:
    """Return the shape, the rank and a generator, or raise an error that names what is wrong."""
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        sizes = ()
    if len(sizes) < 2 or min(sizes) < 1:
        raise InvalidParameterError(
            "shape must hold the sizes of two modes or more, integers of at least 1; "
            f"got {shape!r}."
        )
    try:
        components = operator.index(rank)
    except TypeError:
        components = 0
    if components < 1:
        raise InvalidParameterError(f"rank must be an integer of at least 1; got {rank!r}.")
    try:
        return sizes, components, np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InvalidParameterError(
            "random_state must be an integer of at least 0, a numpy.random.Generator or None; "
            f"got {random_state!r}."
        ) from None


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidParameterError(f"{name} must be a positive number; got {value!r}.")


def _power_ratio(snr: float) -> float:
    if not math.isfinite(snr):
        raise InvalidParameterError(f"snr must be a finite number of decibels; got {snr!r}.")
    return math.pow(10.0, snr / 10.0)
