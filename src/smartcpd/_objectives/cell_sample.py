"""A fixed sample of cells, to judge scales by: how noisy the data is, how large derivatives are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from smartcpd._common.model_cells import values_at
from smartcpd._common.stacked import offsets, unstack
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows, weights_at
from smartcpd._data.tiled import TiledArray
from smartcpd._objectives import Estimate
from smartcpd._problem.problem import Problem
from smartcpd.losses import Data
from smartcpd.partitions.tensor import PartitionedTensor
from smartcpd.sampling.base import random_fibers

N_CELLS = 1 << 14
HALF = N_CELLS // 2


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
        scatter = self.dispersion(A)
        if self._problem.loss.data is Data.BINARY:
            # What a model does not explain of yes and no is scatter of its own making.
            scatter = min(scatter, 1.0)
        return scatter * self._problem.freedom / self._problem.storage.n_observed

    def dispersion(self, A: np.ndarray) -> float:
        """Return how widely the data scatters around the model, by the loss.

        It compares the variance of l' with its expected slope; it is 1 for Poisson and binary data
        that fits its model, sigma² for Gaussian data, 0 for data without noise. A cell that counts
        twice is as noisy as two that always agree. Cells count as they mind a relative change of
        the mean: by their model, or all the same where that is a logarithm.
        """
        loss, x, m = self._problem.loss, self._cells.x, self._cells.model(A)
        unit = np.ones_like(m) if loss.logarithmic else m
        pull = unit * loss.slopes_at(x, m)
        curvature = self._mean(loss.bends_at(x, m) * unit * unit)
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


@sampled_cells.register
def _(storage: SparseTensor, rng: np.random.Generator) -> SampledCells:
    """Return nonzeros and, if absent cells are zeros, some of these: cells at random, without those
    that are nonzeros.
    """
    events = _Events.of(storage, rng)
    if storage.absent != "zero":
        return events.alone
    anywhere = [rng.integers(size, size=HALF) for size in storage.shape]
    x, w = np.empty(HALF), weights_at(storage, anywhere)
    storage.read_cells(stacked_rows(storage.shape, anywhere), x)
    zeros = np.flatnonzero((x == 0) & (w == 1))
    n_zeros = storage.n_cells - storage.n_events
    share = n_zeros / storage.n_observed / max(zeros.size, 1)
    return events.with_zeros([index[zeros] for index in anywhere], share)


@sampled_cells.register
def _(storage: PartitionedTensor, rng: np.random.Generator) -> SampledCells:
    """Return nonzeros and, if absent cells are zeros, cells at random.

    Where a nonzero lies is not known here. Random cells are taken as zeros; nonzeros count once as
    they are and once less as zeros: together they stand for all cells, however rare the nonzeros.
    """
    events = _Events.of(storage, rng)
    if storage.absent != "zero":
        return events.alone
    anywhere = [rng.integers(size, size=HALF) for size in storage.shape]
    share = storage.n_cells / storage.n_observed / HALF
    return events.less_as_zeros.with_zeros(anywhere, share)


@dataclass(frozen=True)
class _Events:
    """Some nonzeros of sparse data, and how much each counts."""

    indices: list[np.ndarray]
    x: np.ndarray
    weights: np.ndarray
    own: np.ndarray
    shape: tuple[int, ...]

    @classmethod
    def of(cls, storage: SparseTensor | PartitionedTensor, rng: np.random.Generator) -> _Events:
        events = storage.some_events(HALF, rng)
        x = events.values.astype(np.float64)
        share = storage.n_events / max(x.size, 1) / storage.n_observed
        own = np.ones(x.size) if events.weights is None else events.weights
        x[own == 0] = 1.0  # every loss accepts 1
        return cls(events.rows(slice(None)), x, own * share, own, storage.shape)

    @property
    def less_as_zeros(self) -> _Events:
        """The same, and each of them once more as a zero that counts against it."""
        share = self.weights.sum() / max(self.own.sum(), 1e-300)
        return _Events(
            [np.concatenate([index, index]) for index in self.indices],
            np.concatenate([self.x, np.zeros(self.x.size)]),
            np.concatenate([self.weights, np.full(self.x.size, -share)]),
            np.concatenate([self.own, np.ones(self.x.size)]),
            self.shape,
        )

    def with_zeros(self, indices: list[np.ndarray], share: float) -> SampledCells:
        """These after zeros that count by a share each."""
        n = indices[0].size
        return _Events(
            [np.concatenate(pair) for pair in zip(indices, self.indices, strict=True)],
            np.concatenate([np.zeros(n), self.x]),
            np.concatenate([np.full(n, share), self.weights]),
            np.concatenate([np.ones(n), self.own]),
            self.shape,
        ).alone

    @property
    def alone(self) -> SampledCells:
        def model(A: np.ndarray) -> np.ndarray:
            return values_at(unstack(A, self.shape), np.ones(A.shape[1]), self.indices)

        return SampledCells(self.x, self.weights, self.own, model)
