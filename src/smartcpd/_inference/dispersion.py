"""How widely data scatters about a model, where its loss leaves that open."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.base import random_cells
from smartcpd._data.storage.observed import is_whole, weights_at
from smartcpd._fitting.model import CPModel
from smartcpd._inference.excerpt import excerpt
from smartcpd._inference.surprise import huber_normaliser, needs_dispersion
from smartcpd.losses import Loss
from smartcpd.partitions.tensor import PartitionedTensor

SAMPLED_CELLS = 1 << 18


def estimate(model: CPModel, X: Any, absent: str = "zero", seed: int = 0) -> float | None:
    """The dispersion that tail probabilities need, estimated from the data.

    For gaussian and huber it is the squared scale of the noise that makes the observed mean loss
    most likely; for gamma and beta, Pearson's estimate, the mean of (x - m)² over the variance
    function, on a sample of cells where there are many. Of poisson, amounts that are no whole
    numbers get Pearson's estimate too. None for losses that leave nothing open.
    """
    loss = model.loss_function
    storage = as_storage(X, absent)
    if loss is None:
        return None
    model, storage, _ = excerpt(model, storage)
    n_observed = max(storage.n_observed, 1)
    freedom = model.rank * (sum(model.shape) - model.order + 1)
    correction = n_observed / max(n_observed - freedom, 1)
    if loss.name == "gaussian":
        return _floored(2.0 * model.loss(storage, absent) * correction)
    if loss.name == "huber":
        return _huber(loss, model.loss(storage, absent))
    if needs_dispersion(loss):
        power = 2.0 if loss.name == "gamma" else 2.0 - loss.params[0]
        return _floored(_pearson(storage, model, power, seed) * correction)
    if loss.name in ("poisson", "poisson-log") and not is_whole(storage):
        return _floored(_pearson(storage, model, 1.0, seed) * correction)
    return None


def _floored(dispersion: float) -> float:
    """A model that is exact leaves no noise, but a distribution needs some."""
    return max(float(dispersion), 1e-300)


def _huber(loss: Loss, mean_loss: float) -> float:
    """Return the dispersion under which exp(-l / dispersion) is the most likely density for that
    mean loss.
    """
    from scipy.optimize import minimize_scalar

    delta = loss.params[0]
    mean_loss = max(mean_loss, 1e-12 * delta**2)

    def cost(log_dispersion: float) -> float:
        dispersion = float(np.exp(log_dispersion))
        return float(np.log(huber_normaliser(delta, dispersion)) + mean_loss / dispersion)

    centre = float(np.log(2.0 * mean_loss))
    best = minimize_scalar(cost, bounds=(centre - 5.0, centre + 15.0), method="bounded")
    return float(np.exp(best.x))


@singledispatch
def _pearson(storage: Storage, model: CPModel, power: float, seed: int) -> float:
    """The mean over the observed cells of (x - m)² / m^power."""
    raise TypeError(f"{type(storage).__name__} is no storage whose cells can be compared.")


@_pearson.register
def _(storage: Dense, model: CPModel, power: float, seed: int) -> float:
    cells = random_cells(storage.shape, SAMPLED_CELLS, np.random.default_rng(seed))
    w = weights_at(storage, cells)
    seen = tuple(index[w != 0] for index in cells)
    found = _squares(model, seen, storage.array[seen], power)
    return float(np.average(found, weights=w[w != 0]))


@_pearson.register
def _(storage: SparseTensor, model: CPModel, power: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    nnz = storage.nnz
    chosen = np.arange(nnz) if nnz <= SAMPLED_CELLS else rng.integers(nnz, size=SAMPLED_CELLS)
    stored = tuple(column[chosen].astype(np.intp) for column in storage.indices)
    found = _squares(model, stored, storage.values[chosen], power)
    w = weights_at(storage, stored)
    if storage.absent == "unobserved":
        return float(np.average(found, weights=w))
    # Every cell as if it were a zero, then what the others add to that.
    surplus = np.mean(w * (found - _squares(model, stored, 0.0, power))) if nnz else 0.0
    cells = random_cells(storage.shape, SAMPLED_CELLS, rng)
    zeros = np.average(_squares(model, cells, 0.0, power), weights=weights_at(storage, cells))
    return float(zeros + surplus * nnz / storage.n_observed)


@_pearson.register
def _(storage: PartitionedTensor, model: CPModel, power: float, seed: int) -> float:
    """Missing cells of data that is not in memory count as zeros."""
    rng = np.random.default_rng(seed)
    events = storage.some_events(SAMPLED_CELLS, rng)
    stored = tuple(events.rows(slice(None)))
    w = np.ones(len(events)) if events.weights is None else events.weights
    found = _squares(model, stored, events.values, power)
    if storage.absent == "unobserved":
        return float(np.average(found, weights=w))
    surplus = np.mean(w * found - _squares(model, stored, 0.0, power))
    zeros = _squares(model, random_cells(storage.shape, SAMPLED_CELLS, rng), 0.0, power).mean()
    return float(
        (zeros * storage.n_cells + surplus * storage.n_events) / max(storage.n_observed, 1)
    )


def _squares(model: CPModel, cells: Any, x: Any, power: float) -> np.ndarray:
    mean = np.maximum(model.mean(cells).astype(np.float64), 1e-12)
    squares: np.ndarray = (np.asarray(x, np.float64) - mean) ** 2 / mean**power
    return squares
