"""The objective over all observed cells of a dense array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from smartcpd._common.joined_modes import JoinedModes
from smartcpd._data.storage import Dense
from smartcpd._objectives.base import ALL_CELLS, Estimate, objective_of
from smartcpd._objectives.fibers import FiberPass
from smartcpd.losses import Loss
from smartcpd.sampling.base import random_fibers

WATCHED_CELLS = 1 << 17
SHORT_FIBERS, MOST_MODES = 16, 4
"""Fibers of fewer cells, in a tensor of more modes, are not worth the products that each of them
needs: modes are joined."""
WORTH_JOINING, MOST_COPIED = 1 << 10, 1 << 22
"""The least number of cells for it, and the most of an array that has to be copied first."""


@dataclass(frozen=True)
class DenseObjective:
    """The objective of a dense array, over every cell as its weight says, or over some fibers that
    stand for all.

    Gradients are computed in the precision of the factors.
    """

    storage: Dense
    loss: Loss
    n_threads: int = 1
    fibers: np.ndarray | None = None
    """Fibers (F x N) that stand for all cells."""
    fiber_mode: int | None = None
    """The mode that they run along; by default the one that is read most cheaply."""

    @cached_property
    def _long(self) -> tuple[JoinedModes, DenseObjective] | None:
        """The same objective with many short modes taken for two long ones, where that pays."""
        storage = self.storage
        short = max(storage.shape) < SHORT_FIBERS and len(storage.shape) > MOST_MODES
        if not short or self.fibers is not None or storage.n_cells < WORTH_JOINING:
            return None
        if storage.n_cells > MOST_COPIED and not storage.array.flags.c_contiguous:
            return None
        joined = JoinedModes.of(storage.shape)
        return joined, replace(self, storage=storage.reshaped(joined.shape), fiber_mode=None)

    def estimate(self, A: np.ndarray) -> Estimate:
        if self._long is not None:
            joined, longer = self._long
            return longer.estimate(joined.products(A).stacked)
        return Estimate(self._pass().value(A, self.fibers) / self.divisor)

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        if self._long is not None:
            joined, longer = self._long
            products = joined.products(A)
            value, gradient = longer.gradient(products.stacked)
            return value, products.pulled_back(gradient)
        total, gradient = self._pass().gradient(A, self.fibers)
        return total / self.divisor, gradient / self.divisor

    def split(
        self, A: np.ndarray, mode: int, want_value: bool = True
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient of one factor, and the gradient of the loss's convex part."""
        along = replace(self, fibers=None, fiber_mode=mode)._pass()
        total, gradient, convex = along.split(A, want_value)
        n = self.storage.n_observed
        return total / n, gradient / n, convex / n

    def curvature_product(self, A: np.ndarray, V: np.ndarray) -> np.ndarray:
        """J' W J V: the Gauss-Newton approximation of the Hessian at A, times the direction V.

        J is the derivative of the model by the factors, W the curvature of the cells' losses.
        """
        return self._pass().curvature_product(A, V, self.fibers) / self.divisor

    @property
    def n_cells(self) -> int:
        """Cells that a pass reads."""
        if self.fibers is None:
            return self.storage.n_cells
        return len(self.fibers) * self.storage.shape[self._mode]

    @property
    def divisor(self) -> float:
        """The number by which a sum over the cells that a pass reads is divided, to make it a mean.

        For some fibers, it is their share of all weights if those are spread evenly: it stays the
        same whatever the fibers hold, or the mean over them would be biased.
        """
        if not self.storage.weighted:
            return self.n_cells
        return self.storage.n_observed * (self.n_cells / self.storage.n_cells)

    @property
    def _mode(self) -> int:
        return self.storage.pass_mode() if self.fiber_mode is None else self.fiber_mode

    def sampled(self, n_cells: float, rng: np.random.Generator) -> DenseObjective:
        """The same objective on random fibers with about ``n_cells`` cells; on all if they are
        no fewer.
        """
        shape, mode = self.storage.shape, self._mode
        n_fibers = -(-int(n_cells) // shape[mode])
        if n_fibers * shape[mode] >= self.storage.n_cells:
            return replace(self, fibers=None)
        fibers = random_fibers(shape, 1, n_fibers, rng)[0]
        fibers[:, mode] = 0
        # Fibers are sorted in the order of memory, which processors read ahead.
        fibers = fibers[np.lexsort(fibers.T[np.argsort(np.abs(self.storage.array.strides))])]
        return replace(self, fibers=fibers)

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        if self.storage.n_cells <= ALL_CELLS:
            return self.estimate
        # The sample is chosen by shape alone, so that a fit does not depend on the memory layout.
        longest = replace(self, fiber_mode=int(np.argmax(self.storage.shape)))
        return longest.sampled(WATCHED_CELLS, rng).estimate

    def compile(self, A: np.ndarray) -> None:
        self.gradient(A)
        self.estimate(A)

    def with_background(self, A: np.ndarray) -> DenseObjective:
        return self  # no cell is passed over

    def _pass(self) -> FiberPass:
        storage = self.storage
        return FiberPass(
            storage.lines_block,
            storage.handle(),
            storage.shape,
            self._mode,
            self.loss,
            self.n_threads,
            storage.weigh_lines_block if storage.weighted else None,
            storage.weights_handle(),
        )


@objective_of.register
def _(storage: Dense, loss: Loss, n_threads: int = 1) -> DenseObjective:
    return DenseObjective(storage, loss, n_threads)
