"""How widely data scatters about a model, where its loss leaves that open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.storage import SparseStorage, SparseTensor, as_storage
from smartcpd._data.storage.observed import is_whole, weights_at
from smartcpd._data.tiled import Blocks
from smartcpd._fitting.model import CPModel
from smartcpd._inference.excerpt import excerpt
from smartcpd.losses import Dispersion

SAMPLED_CELLS = 1 << 18
LEAST = 1e-300
"""The noise of a model that is exact, since a distribution needs some; and a zero's logarithm."""
Variance = Callable[[np.ndarray], np.ndarray]


def estimate(model: CPModel, X: Any, absent: str = "zero", seed: int = 0) -> float | None:
    """The dispersion of data about a model, by the rule of its loss.

    None for losses that leave nothing open (poisson leaves it open for amounts that are no whole
    numbers), and for those that name no distribution.
    """
    loss = model.loss_function
    if loss is None or loss.dispersion in (Dispersion.UNKNOWN, Dispersion.FIXED):
        return None
    storage = as_storage(X, absent)
    if isinstance(storage, Blocks):
        model, storage, _ = excerpt(model, storage)
    if loss.dispersion is Dispersion.OF_AMOUNTS and is_whole(storage):
        return None
    return max(float(loss.estimate_dispersion(Scatter(model, storage, seed))), LEAST)


@dataclass(frozen=True)
class Scatter:
    """What the data of a storage says about the dispersion around a model."""

    model: CPModel
    storage: Any
    seed: int = 0

    @property
    def mean_loss(self) -> float:
        return self.model.loss(self.storage)

    @property
    def freedom(self) -> int:
        """Numbers that the model is free to choose; the scale of a component counts once."""
        return self.model.rank * (sum(self.model.shape) - self.model.order + 1)

    @property
    def correction(self) -> float:
        n_observed = max(self.storage.n_observed, 1)
        return float(n_observed / max(n_observed - self.freedom, 1))

    @property
    def mean_log(self) -> float:
        storage, total = self.storage, 0.0
        if isinstance(storage, SparseTensor):
            own = np.ones(storage.nnz) if storage.weights is None else storage.weights
            total = float(own @ np.log(np.maximum(storage.values.astype(np.float64), LEAST)))
        else:
            weights: Any = getattr(storage, "weights", None)
            for start, slab, seen in storage.observed_slabs():
                logs = np.log(np.maximum(slab[seen] if seen is not None else slab, LEAST))
                if seen is not None:
                    logs = logs * weights[start : start + len(slab)][seen]
                total += float(logs.sum(dtype=np.float64))
        return total / max(storage.n_observed, LEAST)

    def pearson(self, variance: Variance) -> float:
        return _pearson(self.model, self.storage, variance, self.seed)


def _pearson(model: CPModel, storage: Any, variance: Variance, seed: int) -> float:
    """The mean over the observed cells, or over a sample, of (x - mean)² / variance(mean)."""
    rng = np.random.default_rng(seed)
    if isinstance(storage, SparseStorage) and not isinstance(storage, SparseTensor):
        return _pearson_of_sample(model, storage, variance, rng)
    if not isinstance(storage, SparseTensor):
        cells = _cells(storage.shape, rng, storage.n_cells)
        w = weights_at(storage, cells)
        seen = tuple(index[w != 0] for index in cells)
        found = _squares(model, seen, storage.array[seen], variance)
        return float(np.average(found, weights=w[w != 0]))
    nnz = storage.nnz
    chosen = np.arange(nnz) if nnz <= SAMPLED_CELLS else rng.integers(nnz, size=SAMPLED_CELLS)
    stored = tuple(column[chosen].astype(np.intp) for column in storage.indices)
    found = _squares(model, stored, storage.values[chosen], variance)
    w = weights_at(storage, stored)
    if storage.absent == "unobserved":
        return float(np.average(found, weights=w))
    # Every cell as if it were a zero, then what the others add to that.
    surplus = np.mean(w * (found - _squares(model, stored, 0.0, variance))) if nnz else 0.0
    cells = _cells(storage.shape, rng, storage.n_cells)
    zeros = np.average(_squares(model, cells, 0.0, variance), weights=weights_at(storage, cells))
    return float(zeros + surplus * nnz / storage.n_observed)


def _pearson_of_sample(
    model: CPModel, storage: Any, variance: Variance, rng: np.random.Generator
) -> float:
    """The same for data that is not in memory; its missing cells count as zeros."""
    events = storage.some_events(SAMPLED_CELLS, rng)
    stored = tuple(events.rows(slice(None)))
    w = np.ones(len(events)) if events.weights is None else events.weights
    found = _squares(model, stored, events.values, variance)
    if storage.absent == "unobserved":
        return float(np.average(found, weights=w))
    surplus = np.mean(w * found - _squares(model, stored, 0.0, variance))
    zeros = _squares(model, _cells(storage.shape, rng, storage.n_cells), 0.0, variance).mean()
    return float(
        (zeros * storage.n_cells + surplus * storage.n_events) / max(storage.n_observed, 1)
    )


def _cells(shape: tuple[int, ...], rng: np.random.Generator, n_cells: int) -> Any:
    if n_cells <= SAMPLED_CELLS:
        return np.unravel_index(np.arange(n_cells), shape)
    return tuple(rng.integers(size, size=SAMPLED_CELLS) for size in shape)


def _squares(model: CPModel, cells: Any, x: Any, variance: Variance) -> np.ndarray:
    mean = model.mean(cells).astype(np.float64)
    squares: np.ndarray = (np.asarray(x, np.float64) - mean) ** 2 / variance(mean)
    return squares
