"""Log-likelihoods on the scale of the data, which compare losses with each other.

`_inference.likelihood` knows the densities; here it is judged which data has one, and under
which dispersion it is most likely.
"""

from __future__ import annotations

import math

import numpy as np

from smartcpd._data.storage import InMemory, Storage
from smartcpd._data.storage.observed import is_whole
from smartcpd._fitting.model import CPModel
from smartcpd._inference import dispersion
from smartcpd._inference.likelihood import BASES, log_base
from smartcpd._inference.surprise import is_built_in, needs_dispersion
from smartcpd.losses import Data, Loss
from smartcpd.quality.deviance import cell_losses

COUNTS = ("poisson", "poisson-log", "negative-binomial")
LEAST = 1e-300
ROUNDING = 1e-10
"""Noise below this share of the mean square is rounding: fits go no further than a
hundred-thousandth of the values.
"""


def has_density(loss: Loss, storage: Storage) -> bool:
    """Whether the loss gives values like these a probability.

    The user's own losses name no distribution; counts that are no whole numbers have none under
    distributions of counts.
    """
    if loss.name == "beta":
        return 0.0 < loss.params[0] < 1.0
    if loss.name not in BASES or not is_built_in(loss):
        return False
    return loss.name not in COUNTS or is_whole(storage)


def log_density(loss: Loss, x: np.ndarray, m: np.ndarray, scale: float) -> np.ndarray:
    """Return the log-density of values x with model values m; ``scale`` is the dispersion, 1 where
    the loss fixes it.
    """
    return log_base(loss, x, scale) - cell_losses(loss, x, m) / scale


def fitted_scale(model: CPModel, storage: InMemory) -> float:
    """Return the dispersion under which the data that a model was fitted to is most likely."""
    loss = model.loss_function
    assert loss is not None
    if not needs_dispersion(loss):
        return 1.0
    if loss.name == "gamma":
        return _gamma_scale(model, storage)
    found = dispersion.estimate(model, storage)
    assert found is not None
    # The floor keeps rounding from deciding where data has no noise.
    return max(found, ROUNDING * storage.mean_square()) if loss.data is Data.REAL else found


def _gamma_scale(model: CPModel, storage: InMemory) -> float:
    """Return one over the shape k that solves log k - psi(k) = half of the mean deviance."""
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


def _mean_log(storage: InMemory) -> float:
    """Return the weighted mean of log x over the observed cells."""
    total = 0.0
    for x, w in storage.weighted_values():
        logs = np.log(np.maximum(x, LEAST))
        total += float((logs if w is None else w * logs).sum(dtype=np.float64))
    return total / max(storage.n_observed, LEAST)
