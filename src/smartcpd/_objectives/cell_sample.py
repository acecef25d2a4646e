"""A fixed sample of cells, to judge scales by: how noisy the data is, how large derivatives are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from smartcpd._common.model_cells import values_at
from smartcpd._common.stacked import offsets, unstack
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.tiled import TiledArray
from smartcpd._objectives import Estimate
from smartcpd._problem.problem import Problem
from smartcpd.partitions.tensor import PartitionedTensor
from smartcpd.sampling.base import random_fibers

N_CELLS = 1 << 14


class SampledCells(NamedTuple):
    """Some cells of the data; weighted sums over them estimate means over all observed cells.

    ``model`` gives the model values of stacked factors there.
    """

    x: np.ndarray
    weights: np.ndarray
    own_weights: np.ndarray
    """How much each cell counts by itself, which is a part of ``weights``."""
    model: Callable[[np.ndarray], np.ndarray]


class CellSample:
    """Some cells of the data, the same for every model they are compared with."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._cells = sampled_cells(problem.storage, np.random.default_rng(0))

    def estimate(self, A: np.ndarray) -> Estimate:
        """The mean loss, for cells that are like all the others."""
        values = self._problem.loss.values_at(self._cells.x, self._cells.model(A))
        mean = self._mean(values)
        return Estimate(mean, float(np.linalg.norm(self._cells.weights * (values - mean))))

    def error(self, A: np.ndarray, B: np.ndarray) -> float:
        """The standard error of the difference between two models' losses, over all cells."""
        x, model = self._cells.x, self._cells.model
        of_A, of_B = (self._problem.loss.values_at(x, model(each)) for each in (A, B))
        apart = of_A - of_B - self._mean(of_A - of_B)
        # Nonzeros count once less as zeros, which are rare enough to leave that out of a sum of
        # squares: in a sample, it could make the sum negative.
        weights = np.maximum(self._cells.weights, 0.0)
        variance = float(weights @ (self._cells.own_weights * apart**2))
        return math.sqrt(variance / self._problem.storage.n_observed)

    def curvature(self, A: np.ndarray) -> float:
        """Return the mean of m² |l''(x, m)|: how much the loss minds a relative change of the
        model.
        """
        m = self._cells.model(A)
        bend = self._problem.loss.bends_at(self._cells.x, m)
        return abs(self._mean(np.abs(bend) * m * m)) or 1.0

    def resolution(self, A: np.ndarray) -> float:
        """Return how far noise alone moves the minimal mean loss: dispersion * parameters /
        cells.
        """
        return self.dispersion(A) * self._problem.freedom / self._problem.storage.n_observed

    def dispersion(self, A: np.ndarray) -> float:
        """Return how widely the data scatters around the model, by the loss.

        It compares the variance of l' with its expected slope; it is 1 for Poisson and binary data
        that fits its model, sigma² for Gaussian data, 0 for data without noise. A cell that counts
        twice is as noisy as two that always agree.
        """
        loss, x, m = self._problem.loss, self._cells.x, self._cells.model(A)
        pull = m * loss.slopes_at(x, m)
        curvature = self._mean(loss.bends_at(x, m) * m * m)
        size = self._mean(np.abs(pull))
        # A loss without curvature, such as an absolute error, has the size of its slope instead.
        curved = curvature > 1e-6 * size
        noise = self._mean(self._cells.own_weights * pull**2)
        return abs(noise / curvature if curved else size)

    def _mean(self, values: np.ndarray) -> float:
        return float(values @ self._cells.weights)


@singledispatch
def sampled_cells(storage: Storage, rng: np.random.Generator) -> SampledCells:
    """Draw a sample of the cells of a storage; each kind of storage registers its own way."""
    raise TypeError(f"{type(storage).__name__} is no storage whose cells can be sampled.")


@sampled_cells.register
def _(storage: Dense, rng: np.random.Generator) -> SampledCells:
    """The cells of some fibers of the longest mode, or all cells where those are few."""
    shape = storage.shape
    mode = int(np.argmax(shape))
    if storage.n_cells <= N_CELLS:
        fibers = every_fiber(shape, mode)
    else:
        fibers = random_fibers(shape, 1, max(1, N_CELLS // shape[mode]), rng)[0]
    n_fibers = len(fibers)
    x = np.empty((shape[mode], n_fibers))
    storage.gather_block("float64")(storage.handle(), fibers, mode, 0, x)
    w = np.ones_like(x)
    if storage.weighted:
        storage.weigh_block("float64")(storage.weights_handle(), fibers, mode, 0, w)
        x[w == 0] = 1.0  # every loss accepts 1
    starts = offsets(shape)

    def model(A: np.ndarray) -> np.ndarray:
        H = np.ones((n_fibers, A.shape[1]))
        for k in range(len(shape)):
            if k != mode:
                H *= A[starts[k] + fibers[:, k]]
        return (A[starts[mode] : starts[mode + 1]] @ H.T).reshape(-1)

    own = w.reshape(-1)
    return SampledCells(x.reshape(-1), own / max(own.sum(), 1e-300), own, model)


def every_fiber(shape: tuple[int, ...], mode: int) -> np.ndarray:
    """The positions of all fibers along a mode, a row each; their entries for that mode are 0."""
    across = tuple(1 if k == mode else size for k, size in enumerate(shape))
    return np.ascontiguousarray(np.indices(across).reshape(len(shape), -1).T)


@sampled_cells.register
def _(storage: TiledArray, rng: np.random.Generator) -> SampledCells:
    """What was seen of a tensor that is read in blocks."""
    seen = storage.glimpse

    def model(A: np.ndarray) -> np.ndarray:
        return values_at(unstack(A, storage.shape), np.ones(A.shape[1]), seen.indices)

    return SampledCells(seen.x, seen.weights / seen.weights.sum(), seen.weights, model)


@sampled_cells.register(SparseTensor)
@sampled_cells.register(PartitionedTensor)
def _(storage: SparseTensor | PartitionedTensor, rng: np.random.Generator) -> SampledCells:
    """Return nonzeros and, if absent cells are zeros, cells at random.

    Random cells are taken as zeros; nonzeros count once as they are and once less as zeros:
    together they stand for all cells, however rare the nonzeros.
    """
    half = N_CELLS // 2
    n, count = storage.n_observed, storage.n_events
    events = storage.some_events(half, rng)
    indices = events.rows(slice(None))
    x = events.values.astype(np.float64)
    share = np.full(x.size, count / max(x.size, 1) / n)
    own = np.ones(x.size) if events.weights is None else events.weights
    x[own == 0] = 1.0  # every loss accepts 1
    weights = own * share
    if storage.absent == "zero":
        anywhere = [rng.integers(size, size=half) for size in storage.shape]
        indices = [np.concatenate(p) for p in zip(anywhere, indices, indices, strict=True)]
        everywhere = np.full(half, storage.n_cells / n / half)
        x = np.concatenate([np.zeros(half), x, np.zeros(x.size)])
        weights = np.concatenate([everywhere, weights, -share])
        own = np.concatenate([np.ones(half), own, np.ones(own.size)])

    def model(A: np.ndarray) -> np.ndarray:
        return values_at(unstack(A, storage.shape), np.ones(A.shape[1]), indices)

    return SampledCells(x, weights, own, model)
