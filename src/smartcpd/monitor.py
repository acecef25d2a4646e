"""Watching a fit: its loss on all cells, or on a fixed sample when there are many."""

from __future__ import annotations

import numpy as np

from smartcpd.objective import Objective
from smartcpd.problem import Problem
from smartcpd.sample import CellSample
from smartcpd.sampling import Uniform
from smartcpd.stack import unstack

ALL_CELLS = 1 << 18
SAMPLED_CELLS = 1 << 17


class Monitor:
    """The objective as the fit sees it after each epoch.

    The sample stays the same for the whole fit, so that two losses differ by the factors alone.
    """

    def __init__(self, objective: Objective, problem: Problem, rng: np.random.Generator) -> None:
        self._objective = objective
        self._problem = problem
        self.exact = problem.storage.n_cells <= ALL_CELLS
        # By shape alone, and from a stream of its own: the same fit whatever the memory layout.
        self._mode = int(np.argmax(problem.shape))
        n_fibers = -(-SAMPLED_CELLS // problem.shape[self._mode])
        self._fibers = Uniform().draw(problem.shape, 1, n_fibers, rng.spawn(1)[0]).fibers[0]
        self._sample = CellSample(problem)

    def loss(self, A: np.ndarray) -> float:
        if self.exact:
            return self._objective.value(A)
        return self._objective.sampled_value(A, self._mode, self._fibers)

    def penalty(self, A: np.ndarray) -> float:
        return self._problem.penalty(unstack(A, self._problem.shape))

    def resolution(self, A: np.ndarray) -> float:
        """Differences of the loss much smaller than this mean nothing to the data."""
        return self._sample.resolution(A)
