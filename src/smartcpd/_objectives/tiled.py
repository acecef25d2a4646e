"""The objective over all cells of an array that is read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage.dense import Dense
from smartcpd._data.tiled.storage import TiledArray, Where
from smartcpd._objectives.base import Estimate, objective_of
from smartcpd._objectives.dense import DenseObjective
from smartcpd.losses import Loss


class BlockSum(NamedTuple):
    """The sums over the cells of a block."""

    total: float
    gradient: np.ndarray
    """The gradient for the rows of the block; without meaning if it was not asked for."""
    weight: float


def block_sum(
    block: Dense, loss: Loss, A: np.ndarray, want_gradient: bool, n_threads: int
) -> BlockSum | None:
    """The sum over a block whose rows have the stacked factors A; None without an observed cell."""
    if not block.n_observed:
        return None
    objective = DenseObjective(block, loss, n_threads)
    n = objective.divisor
    if not want_gradient:
        return BlockSum(objective.estimate(A).loss * n, A[:0], n)
    value, gradient = objective.gradient(A)
    return BlockSum(value * n, gradient * n, n)


@dataclass(frozen=True)
class TiledObjective:
    """Sums over the blocks, each of which is read once for a value or a gradient."""

    storage: TiledArray
    loss: Loss
    n_threads: int = 1

    def estimate(self, A: np.ndarray) -> Estimate:
        found = [of_block for _, of_block in self._sums(A, want_gradient=False)]
        return Estimate(sum(s.total for s in found) / sum(s.weight for s in found))

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        total = weight = 0.0
        sums = np.zeros(A.shape)
        for rows, of_block in self._sums(A, want_gradient=True):
            total += of_block.total
            weight += of_block.weight
            sums[rows] += of_block.gradient
        return total / weight, sums / weight

    def _sums(self, A: np.ndarray, want_gradient: bool) -> Iterator[tuple[np.ndarray, BlockSum]]:
        """The rows and the sum of each block, always in the same order; those without an observed
        cell are left out."""
        if self.storage.cluster is not None:
            blocks = [(where, self.rows(where)) for where in self.storage.places()]
            tasks = [(where, A[rows]) for where, rows in blocks]
            found = self.storage.cluster.block_sums(self.storage, self.loss, tasks, want_gradient)
            pairs = zip((rows for _, rows in blocks), found, strict=True)
            yield from ((rows, of_block) for rows, of_block in pairs if of_block is not None)
            return
        for where, dense in self.storage.all_blocks(self.loss):
            rows = self.rows(where)
            of_block = block_sum(dense, self.loss, A[rows], want_gradient, self.n_threads)
            if of_block is not None:
                yield rows, of_block

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        return self.estimate

    def compile(self, A: np.ndarray) -> None:
        self.gradient(A)

    def with_background(self, A: np.ndarray) -> TiledObjective:
        return self  # no cell is passed over

    def rows(self, where: Where) -> np.ndarray:
        """Return which of the stacked factors' rows are those of a block."""
        starts = offsets(self.storage.shape)[:-1]
        pairs = zip(starts, where, strict=True)
        return np.concatenate([np.arange(start + s.start, start + s.stop) for start, s in pairs])


@objective_of.register
def _(storage: TiledArray, loss: Loss, n_threads: int = 1) -> TiledObjective:
    return TiledObjective(storage, loss, n_threads)
