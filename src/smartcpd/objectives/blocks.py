"""The objective over all cells of an array that is read in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcpd.blocks.storage import Blocks, Where
from smartcpd.losses import Loss
from smartcpd.objectives.base import Estimate
from smartcpd.objectives.dense import DenseObjective
from smartcpd.stack import offsets


@dataclass(frozen=True)
class BlocksObjective:
    """Sums over the blocks, each of which is read once for a value or a gradient."""

    storage: Blocks
    loss: Loss
    n_threads: int = 1

    def estimate(self, A: np.ndarray) -> Estimate:
        total = weight = 0.0
        for where, dense in self.storage.all_blocks(self.loss):
            if dense.n_observed:
                of_block = DenseObjective(dense, self.loss, self.n_threads)
                total += of_block.estimate(A[self.rows(where)]).loss * of_block.divisor
                weight += of_block.divisor
        return Estimate(total / weight)

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        total = weight = 0.0
        sums = np.zeros(A.shape)
        for where, dense in self.storage.all_blocks(self.loss):
            if dense.n_observed:
                of_block = DenseObjective(dense, self.loss, self.n_threads)
                rows = self.rows(where)
                value, gradient = of_block.gradient(A[rows])
                total += value * of_block.divisor
                sums[rows] += gradient * of_block.divisor
                weight += of_block.divisor
        return total / weight, sums / weight

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        return self.estimate

    def rows(self, where: Where) -> np.ndarray:
        """Of the stacked factors, those of a block."""
        starts = offsets(self.storage.shape)[:-1]
        pairs = zip(starts, where, strict=True)
        return np.concatenate([np.arange(start + s.start, start + s.stop) for start, s in pairs])
