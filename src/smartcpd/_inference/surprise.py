"""How unexpected an observed value is under the fitted distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss

SPREAD_OF_COUNTS = 12.0
"""Number of standard deviations of a Poisson count beyond which its probability is nothing."""

Tails = tuple[np.ndarray, np.ndarray]
"""P(X <= x) and P(X >= x)."""


def tail_probability(loss: Loss, x: Any, m: Any, dispersion: float | None = None) -> np.ndarray:
    """Return the two-sided tail probability of values under the distribution of a loss.

    That is min(1, 2 min(P(X <= x), P(X >= x))): near 1 for a value in the middle, near 0 for one
    far out on either side.

    Parameters
    ----------
    loss : Loss
        Any built-in one.
    x : array
        The values that were observed.
    m : array
        The model values of their cells, `CPModel.values`.
    dispersion : float, optional
        How widely the data scatters, as `_inference.dispersion.estimate` finds it; needed by
        losses that leave it open: gaussian, huber, gamma and beta. Of poisson, it says in which
        unit amounts that are no counts scatter like counts; 1 by default.

    Returns
    -------
    ndarray
        In the shape that x and m have together.
    """
    tails = TAILS.get(loss.name) if is_built_in(loss) else None
    if tails is None:
        raise InvalidParameterError(
            f"Loss '{loss}' names no distribution, so no value can be called surprising. "
            f"Losses that do: {', '.join(TAILS)}."
        )
    check_dispersion(loss, dispersion)
    value, model = np.broadcast_arrays(np.asarray(x, float), np.asarray(m, float))
    lower, upper = tails(loss, value, model, 1.0 if dispersion is None else float(dispersion))
    probability = np.minimum(1.0, 2.0 * np.minimum(lower, upper))
    return np.where(np.isnan(value), np.nan, probability)


def check_dispersion(loss: Loss, dispersion: float | None) -> None:
    """Refuse to go on without the size of the noise where a loss leaves it open."""
    if needs_dispersion(loss) and (dispersion is None or not dispersion > 0):
        raise InvalidParameterError(
            f"Loss '{loss}' leaves the size of the noise open; pass dispersion, a positive number, "
            f"as smartcpd._inference.dispersion.estimate finds it. Got {dispersion!r}."
        )


def needs_dispersion(loss: Loss) -> bool:
    """Whether the loss leaves the size of the noise open."""
    return loss.name in ("gaussian", "huber", "gamma", "beta")


def is_built_in(loss: Loss) -> bool:
    """Whether the loss is one of the package, whose names mean distributions."""
    from smartcpd import losses

    return not isinstance(loss, losses.CustomLoss)


def _tails(distribution: Any, x: np.ndarray) -> Tails:
    """Return the tails of a distribution of SciPy's; those of a discrete one include x itself on
    either side.
    """
    step = 1.0 if hasattr(distribution.dist, "pmf") else 0.0
    at_or_above = distribution.sf(np.ceil(x) - step) if step else distribution.sf(x)
    return distribution.cdf(x), at_or_above


def _poisson(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    from scipy import stats

    mean = np.maximum(loss.mean(m, loss.params), 0.0)
    # A quotient that rounding has left just beside a whole number is that number.
    events = np.round(x / dispersion, 9)
    return _tails(stats.poisson(mean / dispersion), events)


def _bernoulli(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    from scipy import stats

    return _tails(stats.bernoulli(loss.mean(m, loss.params)), x)


def _negative_binomial(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    from scipy import stats

    return _tails(stats.nbinom(loss.params[0], 1.0 / (1.0 + np.maximum(m, 0.0))), x)


def _gaussian(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    from scipy import stats

    return _tails(stats.norm(m, np.sqrt(dispersion)), x)


def _rayleigh(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    from scipy import stats

    return _tails(stats.rayleigh(scale=_positive(m) / np.sqrt(np.pi / 2)), x)


def _gamma(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    from scipy import stats

    return _tails(stats.gamma(1.0 / dispersion, scale=_positive(m) * dispersion), x)


def _huber(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    """The density is proportional to exp(-l / dispersion): normal, with exponential tails."""
    from scipy import special

    delta, sigma = loss.params[0], np.sqrt(dispersion)
    distance = np.abs(x - m)
    middle = sigma * np.sqrt(2.0 * np.pi)
    beyond = dispersion / delta * np.exp(-(delta**2) / (2.0 * dispersion))
    total = huber_normaliser(delta, dispersion)
    near = middle * (
        special.ndtr(-np.minimum(distance, delta) / sigma) - special.ndtr(-delta / sigma)
    )
    far = beyond * np.exp(-np.maximum(distance - delta, 0.0) * delta / dispersion)
    tail = (near + np.where(distance > delta, far, beyond)) / total
    return np.where(x < m, tail, 1.0 - tail), np.where(x < m, 1.0 - tail, tail)


def huber_normaliser(delta: float, dispersion: float) -> float:
    """The integral of exp(-l / dispersion) over all distances."""
    from scipy import special

    sigma = np.sqrt(dispersion)
    middle = sigma * np.sqrt(2.0 * np.pi) * (1.0 - 2.0 * special.ndtr(-delta / sigma))
    return float(middle + 2.0 * dispersion / delta * np.exp(-(delta**2) / (2.0 * dispersion)))


def _beta(loss: Loss, x: np.ndarray, m: np.ndarray, dispersion: float) -> Tails:
    """Tweedie's compound of Poisson and gamma for beta between 0 and 1; else a gamma distribution
    of the same mean and variance, dispersion * m^(2 - beta), or at 1 and 2 the exact one."""
    from scipy import stats

    beta = loss.params[0]
    if beta == 1.0:
        return _poisson(loss, x, m, dispersion)
    if beta == 2.0:
        return _gaussian(loss, x, m, dispersion)
    mean = _positive(m)
    if not 0.0 < beta < 1.0:
        scale = dispersion * mean ** (1.0 - beta)
        return _tails(stats.gamma(mean / scale, scale=scale), x)
    return _compound(x, mean, dispersion, power=2.0 - beta)


def _compound(x: np.ndarray, mean: np.ndarray, dispersion: float, power: float) -> Tails:
    """The sum of a Poisson number of gamma amounts, conditioned on that number."""
    from scipy import special, stats

    rate = mean ** (2.0 - power) / (dispersion * (2.0 - power))
    shape = (2.0 - power) / (power - 1.0)
    scale = dispersion * (power - 1.0) * mean ** (power - 1.0)
    below = np.exp(-rate) * (x >= 0)
    at_zero = np.where(x == 0, below, 0.0)
    largest = float(rate.max(initial=0.0))
    amount = np.maximum(x, 0.0) / scale
    for n in range(1, int(largest + SPREAD_OF_COUNTS * np.sqrt(largest) + 2 * SPREAD_OF_COUNTS)):
        below += stats.poisson.pmf(n, rate) * special.gammainc(n * shape, amount) * (x > 0)
    return below, np.clip(1.0 - below + at_zero, 0.0, 1.0)


def _positive(m: np.ndarray) -> np.ndarray:
    return np.maximum(m, np.finfo(float).tiny)


TAILS: dict[str, Callable[[Loss, np.ndarray, np.ndarray, float], Tails]] = {
    "bernoulli-logit": _bernoulli,
    "bernoulli-odds": _bernoulli,
    "beta": _beta,
    "gamma": _gamma,
    "gaussian": _gaussian,
    "huber": _huber,
    "negative-binomial": _negative_binomial,
    "poisson": _poisson,
    "poisson-log": _poisson,
    "rayleigh": _rayleigh,
}
