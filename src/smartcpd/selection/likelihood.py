"""Log-likelihoods on the scale of the data, which compare losses with each other.

Under every loss, the density of a value x is exp(-l(x, m) / dispersion) times a part that depends
on x and the dispersion alone. The loss knows the first; this module the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from smartcpd import dispersion
from smartcpd.losses import Data, Loss
from smartcpd.losses.negative_binomial import NegativeBinomial
from smartcpd.model import CPModel
from smartcpd.quality.deviance import cell_losses
from smartcpd.storage import SparseTensor, Storage
from smartcpd.surprise import huber_normaliser, needs_dispersion

MANY_EVENTS = 500
"""From so many expected events on, Tweedie's compound is as good as its saddlepoint."""
LEAST = 1e-300
ROUNDING = 1e-10
"""Of the mean square: fits go no further than a hundred-thousandth of the values."""


def has_density(loss: Loss, storage: Storage) -> bool:
    """Whether the loss gives values like these a probability.

    The user's own losses name no distribution; counts that are no whole numbers have none under
    distributions of counts.
    """
    if loss.name == "beta":
        return 0.0 < loss.params[0] < 1.0
    if loss.name not in CONSTANTS:
        return False
    return loss.name not in COUNTS or dispersion.is_whole(storage)


def log_density(loss: Loss, x: np.ndarray, m: np.ndarray, scale: float) -> np.ndarray:
    """Of values x with model values m; ``scale`` is the dispersion, 1 where the loss fixes it."""
    found: np.ndarray = CONSTANTS[loss.name](loss, x, scale) - cell_losses(loss, x, m) / scale
    return found


def fitted_scale(model: CPModel, storage: Storage) -> float:
    """The dispersion under which the data that a model was fitted to is most likely."""
    loss = model.loss_function
    assert loss is not None
    if not needs_dispersion(loss):
        return 1.0
    if loss.name == "gamma":
        return _gamma_scale(model, storage)
    found = dispersion.estimate(model, storage)
    assert found is not None
    # Of data without noise, what rounding leaves of it must not decide.
    return max(found, ROUNDING * storage.mean_square()) if loss.data is Data.REAL else found


def _gamma_scale(model: CPModel, storage: Storage) -> float:
    """One over the shape k that solves log k - psi(k) = half of the mean deviance."""
    from scipy import optimize, special

    freedom = model.rank * (sum(model.shape) - model.order + 1)
    excess = model.loss(storage) - 1.0 - _mean_log(storage)
    excess *= storage.n_observed / max(storage.n_observed - freedom, 1)
    excess = max(excess, ROUNDING)

    def gap(log_k: float) -> float:
        k = math.exp(log_k)
        return float(log_k - special.digamma(k) - excess)

    # The left side lies between 1 / (2 k) and 1 / k.
    low, high = math.log(0.4 / excess), math.log(1.1 / excess)
    return math.exp(-float(optimize.brentq(gap, low, high)))


def _mean_log(storage: Storage) -> float:
    """The weighted mean of log x over the observed cells."""
    total = 0.0
    if isinstance(storage, SparseTensor):
        own = np.ones(storage.nnz) if storage.weights is None else storage.weights
        total = float(own @ np.log(np.maximum(storage.values.astype(np.float64), LEAST)))
    else:
        weights: Any = getattr(storage, "weights", None)
        for start, slab, seen in storage.observed_slabs():  # type: ignore[attr-defined]
            logs = np.log(np.maximum(slab[seen] if seen is not None else slab, LEAST))
            if seen is not None:
                logs = logs * weights[start : start + len(slab)][seen]
            total += float(logs.sum(dtype=np.float64))
    return total / max(storage.n_observed, LEAST)


def _counts(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    from scipy import special

    found: np.ndarray = -special.gammaln(x + 1.0)
    if isinstance(loss, NegativeBinomial):
        found += special.gammaln(x + loss.r) - special.gammaln(loss.r)
    return found


def _nothing(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    return np.zeros_like(x)


def _gaussian(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    return np.full_like(x, -0.5 * math.log(2.0 * math.pi * scale))


def _huber(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    return np.full_like(x, -math.log(huber_normaliser(loss.params[0], scale)))


def _rayleigh(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    return np.log(np.maximum(x, LEAST)) + math.log(0.5 * math.pi)


def _gamma(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    k = 1.0 / scale
    return k * math.log(k) - math.lgamma(k) + (k - 1.0) * np.log(np.maximum(x, LEAST))


def _tweedie(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    """The series of Dunn and Smyth (2005) for the compound of Poisson and gamma."""
    from scipy import special

    beta = loss.params[0]
    shape = beta / (1.0 - beta)
    kinds, where = np.unique(x, return_inverse=True)
    found = np.zeros_like(kinds)
    events = kinds**beta / (scale * beta)  # near which number the terms are largest
    many = events > MANY_EVENTS
    own = cell_losses(loss, kinds[many], kinds[many]) / scale
    found[many] = own - 0.5 * np.log(2.0 * math.pi * scale * kinds[many] ** (2.0 - beta))
    few = (kinds > 0) & ~many
    log_x = np.log(kinds[few])
    log_z = shape * (log_x - math.log(1.0 - beta)) - (1.0 + shape) * math.log(scale)
    log_z -= math.log(beta)
    most = float(events[few].max(initial=0.0))
    total = np.full(log_x.size, -np.inf)
    for j in range(1, int(most + 12.0 * math.sqrt(most) + 24.0)):
        term = j * log_z - math.lgamma(j + 1.0) - special.gammaln(j * shape)
        total = np.logaddexp(total, term)
    found[few] = total - log_x
    return found[where.reshape(x.shape)]


COUNTS = ("poisson", "poisson-log", "negative-binomial")
CONSTANTS: dict[str, Callable[[Loss, np.ndarray, float], np.ndarray]] = {
    "bernoulli-logit": _nothing,
    "bernoulli-odds": _nothing,
    "beta": _tweedie,
    "gamma": _gamma,
    "gaussian": _gaussian,
    "huber": _huber,
    "negative-binomial": _counts,
    "poisson": _counts,
    "poisson-log": _counts,
    "rayleigh": _rayleigh,
}
"""What is added to -l / dispersion, by the loss's name."""
