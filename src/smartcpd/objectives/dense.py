"""The objective over all cells of a dense array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcpd.losses import Loss
from smartcpd.objectives.base import ALL_CELLS, Estimate
from smartcpd.objectives.fibers import FiberPass
from smartcpd.sampling.base import random_fibers
from smartcpd.storage import Storage

WATCHED_CELLS = 1 << 17


@dataclass(frozen=True)
class DenseObjective:
    """Every cell counts, and is read in its turn."""

    storage: Storage
    loss: Loss
    n_threads: int = 1

    def estimate(self, A: np.ndarray) -> Estimate:
        total = self._pass().value(A, self.storage.pass_mode())
        return Estimate(total / self.storage.n_cells)

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        total, gradient = self._pass().gradient(A)
        n = self.storage.n_cells
        return total / n, gradient / n

    def mode_gradient(self, A: np.ndarray, mode: int) -> tuple[float, np.ndarray]:
        total, gradient = self._pass().mode_gradient(A, mode)
        n = self.storage.n_cells
        return total / n, gradient / n

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        if self.storage.n_cells <= ALL_CELLS:
            return self.estimate
        # By shape alone, so that a fit does not depend on the memory layout.
        mode = int(np.argmax(self.storage.shape))
        n_fibers = -(-WATCHED_CELLS // self.storage.shape[mode])
        fibers = random_fibers(self.storage.shape, 1, n_fibers, rng)[0]

        def look(A: np.ndarray) -> Estimate:
            total, _ = self._pass().over(A, mode, fibers, False)
            return Estimate(total / (n_fibers * self.storage.shape[mode]))

        return look

    def _pass(self) -> FiberPass:
        storage = self.storage
        return FiberPass(
            storage.gather_block("float64"),
            storage.handle(),
            storage.shape,
            self.loss,
            self.n_threads,
        )
