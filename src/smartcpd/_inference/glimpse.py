"""The share of deviance that a model explains, from a few thousand cells."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.base import random_cells
from smartcpd._data.storage.observed import stacked_rows, weights_at
from smartcpd._fitting.model import CPModel

CELLS = 1 << 14


class _Sample(NamedTuple):
    cells: tuple[np.ndarray, ...]
    x: np.ndarray
    weights: np.ndarray
    """What each cell stands for."""


def deviance_explained(model: CPModel, storage: Storage) -> float | None:
    """Return 1 - deviance of the model / deviance of the best constant, on some cells.

    All cells are read where there are no more than 16,384, else a sample, which is always the same;
    the share is then right to about a hundredth. None for data that is read part by part, and where
    the loss has no deviance for such values.
    """
    loss = model.loss_function
    sample = _some(storage, np.random.default_rng(0))
    if loss is None or sample is None or not sample.weights.sum() > 0:
        return None
    x, w = sample.x.astype(np.float64), sample.weights
    mean = float(w @ x / w.sum())
    with np.errstate(all="ignore"):
        constant = float(w @ loss.deviance(x, np.full(x.size, loss.link(mean))))
        own = float(w @ loss.deviance(x, model.values(sample.cells).astype(np.float64)))
    if not (np.isfinite(own) and np.isfinite(constant) and constant > 0):
        return None
    return min(1.0, 1.0 - own / constant)


@singledispatch
def _some(storage: Any, rng: np.random.Generator) -> _Sample | None:
    """Return observed cells, all or some; nothing of data that is not in memory."""
    return None


@_some.register
def _(storage: Dense, rng: np.random.Generator) -> _Sample:
    cells = _cells(storage.shape, rng)
    w = weights_at(storage, cells)
    seen = tuple(index[w > 0] for index in cells)
    return _Sample(seen, storage.array[seen], w[w > 0].astype(np.float64))


@_some.register
def _(storage: SparseTensor, rng: np.random.Generator) -> _Sample:
    nnz = storage.nnz
    chosen = np.arange(nnz) if nnz <= CELLS else rng.integers(nnz, size=CELLS)
    stored = tuple(column[chosen].astype(np.intp) for column in storage.indices)
    own = weights_at(storage, stored) * (nnz / max(len(chosen), 1))
    if storage.absent == "unobserved":
        return _Sample(stored, storage.values[chosen], own)
    cells = _cells(storage.shape, rng)
    x = np.zeros(len(cells[0]))
    w = weights_at(storage, cells)
    is_stored = _among(cells, storage)
    w = np.where(is_stored, 0.0, w) * (storage.n_cells / len(x))
    both = tuple(np.concatenate(pair) for pair in zip(stored, cells, strict=True))
    return _Sample(
        both, np.concatenate([storage.values[chosen].astype(float), x]), np.concatenate([own, w])
    )


def _cells(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    if np.prod(shape, dtype=float) <= CELLS:
        return tuple(np.indices(shape).reshape(len(shape), -1))
    return tuple(random_cells(shape, CELLS, rng))


def _among(cells: tuple[np.ndarray, ...], storage: SparseTensor) -> np.ndarray:
    """Return which cells hold something."""
    x = np.empty(len(cells[0]))
    storage.read_cells(stacked_rows(storage.shape, list(cells)), x)
    return x != 0
