"""How widely data scatters about a model, where its loss leaves that open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._common.factors import count_free
from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.base import random_cells
from smartcpd._data.storage.observed import is_whole, weights_at
from smartcpd._fitting.model import CPModel
from smartcpd._inference.excerpt import Excerpt
from smartcpd.losses import Dispersion
from smartcpd.partitions.tensor import PartitionedTensor

SAMPLED_CELLS = 1 << 18
LEAST = 1e-300
"""The noise of a model that is exact, since a distribution needs some; and a zero's logarithm."""
Variance = Callable[[np.ndarray], np.ndarray]


def estimate(
    model: CPModel,
    X: Any,
    absent: str = "zero",
    seed: int = 0,
    known_loss: float | None = None,
) -> float | None:
    """Estimate the dispersion of data about a model, by the rule of its loss.

    None for losses that leave nothing open (poisson leaves it open for amounts that are no whole
    numbers), and for those that name no distribution. ``known_loss`` is the mean loss of the model
    on X, where somebody has computed it before.
    """
    loss = model.loss_function
    if loss is None or loss.dispersion in (Dispersion.UNKNOWN, Dispersion.FIXED):
        return None
    excerpt = Excerpt.of(as_storage(X, absent))
    model, storage = excerpt.rows_of(model.with_exposure()), excerpt.storage
    if loss.dispersion is Dispersion.OF_AMOUNTS and is_whole(storage):
        return None
    scatter = Scatter(model, storage, seed, known_loss)
    return max(float(loss.estimate_dispersion(scatter)), LEAST)


@dataclass(frozen=True)
class Scatter:
    """What the data of a storage says about the dispersion around a model."""

    model: CPModel
    storage: Any
    seed: int = 0
    known_loss: float | None = None

    @property
    def mean_loss(self) -> float:
        """The mean loss of the model on the data."""
        return self.model.loss(self.storage) if self.known_loss is None else self.known_loss

    @property
    def freedom(self) -> int:
        """Numbers that the model is free to choose; the scale of a component counts once."""
        return count_free(self.model.factors)

    @property
    def correction(self) -> float:
        n_observed = max(self.storage.n_observed, 1)
        return float(n_observed / max(n_observed - self.freedom, 1))

    @property
    def mean_log(self) -> float:
        """The weighted mean of log x over the observed cells."""
        total = 0.0
        for x, w in self.storage.weighted_values():
            logs = np.log(np.maximum(x, LEAST))
            total += float((logs if w is None else w * logs).sum(dtype=np.float64))
        return total / max(self.storage.n_observed, LEAST)

    def pearson(self, variance: Variance) -> float:
        return _pearson(self.storage, self.model, variance, self.seed)


@singledispatch
def _pearson(storage: Storage, model: CPModel, variance: Variance, seed: int) -> float:
    """Return the mean over the observed cells, or a sample, of (x - mean)² / variance(mean)."""
    raise TypeError(f"{type(storage).__name__} is no storage whose cells can be compared.")


@_pearson.register
def _(storage: Dense, model: CPModel, variance: Variance, seed: int) -> float:
    cells = random_cells(storage.shape, SAMPLED_CELLS, np.random.default_rng(seed))
    w = weights_at(storage, cells)
    seen = tuple(index[w != 0] for index in cells)
    found = _squares(model, seen, storage.array[seen], variance)
    return float(np.average(found, weights=w[w != 0]))


@_pearson.register
def _(storage: SparseTensor, model: CPModel, variance: Variance, seed: int) -> float:
    rng = np.random.default_rng(seed)
    nnz = storage.nnz
    chosen = np.arange(nnz) if nnz <= SAMPLED_CELLS else rng.integers(nnz, size=SAMPLED_CELLS)
    stored = tuple(column[chosen].astype(np.intp) for column in storage.indices)
    found = _squares(model, stored, storage.values[chosen], variance)
    w = weights_at(storage, stored)
    if storage.absent == "unobserved":
        return float(np.average(found, weights=w))
    # Every cell as if it were a zero, then what the others add to that.
    surplus = np.mean(w * (found - _squares(model, stored, 0.0, variance))) if nnz else 0.0
    cells = random_cells(storage.shape, SAMPLED_CELLS, rng)
    zeros = np.average(_squares(model, cells, 0.0, variance), weights=weights_at(storage, cells))
    return float(zeros + surplus * nnz / storage.n_observed)


@_pearson.register
def _(storage: PartitionedTensor, model: CPModel, variance: Variance, seed: int) -> float:
    """Missing cells of data that is not in memory count as zeros."""
    rng = np.random.default_rng(seed)
    events = storage.some_events(SAMPLED_CELLS, rng)
    stored = tuple(events.rows(slice(None)))
    w = np.ones(len(events)) if events.weights is None else events.weights
    found = _squares(model, stored, events.values, variance)
    if storage.absent == "unobserved":
        return float(np.average(found, weights=w))
    surplus = np.mean(w * found - _squares(model, stored, 0.0, variance))
    zeros = _squares(model, random_cells(storage.shape, SAMPLED_CELLS, rng), 0.0, variance).mean()
    return float(
        (zeros * storage.n_cells + surplus * storage.n_events) / max(storage.n_observed, 1)
    )


def _squares(model: CPModel, cells: Any, x: Any, variance: Variance) -> np.ndarray:
    mean = model.mean(cells).astype(np.float64)
    squares: np.ndarray = (np.asarray(x, np.float64) - mean) ** 2 / variance(mean)
    return squares
