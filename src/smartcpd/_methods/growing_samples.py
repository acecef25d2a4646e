"""Quasi-Newton descents on samples of fibers that grow, for dense tensors with very many cells.

The first sample is as small as the error of the start allows; each further one has several times as
many cells, up to all of them or to what time allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._common.stacked import stack
from smartcpd._methods.base import Method, Result, Settings, Task
from smartcpd._methods.dense_descent import check_dense
from smartcpd._methods.descents import FINISHED, Candidate, Descents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem

FIRST_CELLS = 512
"""Cells a parameter in the first sample of fibers: the error that sampling adds to the model's
values is then a small share of the noise of a cell ..."""
GROWTH = 4
"""... and halves with each further sample."""
SAMPLED = 5e-2
"""The gain that the last steps on a sample may still leave, relative to its resolution."""
MOST_CELLS = 1 << 27
"""The number of cells in the largest sample; passes over more would take seconds each."""
STEPS_A_SAMPLE = 12
"""About how many passes a sample takes, to see whether the time will do."""


class GrowingSamples:
    """Descents on samples of one tensor, the next larger than the last."""

    def __init__(
        self, problem: Problem, settings: Settings, tracker: Tracker, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.tracker = tracker
        self.rng = rng
        self.descents = Descents(problem, settings, tracker, rng)
        # Hessians of rows would take passes over all of the data.
        self.descents.region = replace(self.descents.region, row_bends=None)

    def improved(self, A: np.ndarray) -> Status:
        """Descents on samples of fibers that grow, until the data or the time is used up."""
        whole, n_cells = self.descents.objective, self.problem.storage.n_cells
        wanted: float = min(FIRST_CELLS * self.problem.freedom, MOST_CELLS)
        while True:
            self.descents.objective = whole.sampled(wanted, self.rng)
            cells = self.descents.objective.n_cells
            full = cells == n_cells
            phase = "finish" if full else f"{cells / n_cells:.2g} of the cells"
            # What another sample adds to the loss of the last one says nothing about progress.
            self.tracker.begin_with(A)
            began, entries = self.tracker.elapsed, self.tracker.entries
            found = self.descents.run(A, phase, FINISHED if full else SAMPLED)
            A = found.A
            a_cell = (self.tracker.elapsed - began) / max(self.tracker.entries - entries, 1)
            if full:
                return found.status
            wanted = GROWTH * cells
            if 2 * wanted > n_cells:
                wanted = n_cells
            if wanted > MOST_CELLS or not self._affordable(a_cell * wanted):
                return self._sampled(found, cells)

    def _affordable(self, seconds: float) -> bool:
        """Whether a sample whose passes take this long can be finished in time."""
        limit = self.settings.stopping.max_time
        if limit is None:
            return True
        left = limit - self.tracker.elapsed
        return STEPS_A_SAMPLE * seconds < left

    def _sampled(self, found: Candidate, cells: int) -> Status:
        """The status of a fit that ends with a sample."""
        if not found.settled:
            return found.status
        share = cells / self.problem.storage.n_cells
        more = "" if self.settings.stopping.max_time is None else " More max_time allows more."
        return Status(
            True,
            f"Converged on a sample: the loss settled at {found.loss:.6g} on random fibers with "
            f"{share:.2g} of the cells, {cells / self.problem.freedom:.0f} a parameter.{more}",
        )


def _run(task: Task) -> Result:
    """Improve a start; superfluous components are merged first."""
    problem, settings = task.problem, task.settings
    tracker = Tracker(problem, settings, task.observe, task.rng)
    samples = GrowingSamples(problem, settings, tracker, task.rng)
    A = stack(task.start)
    if A.shape[1] > problem.rank:
        A = samples.descents.reduced(A)
    samples.descents.compile(A)
    tracker.begin_with(A)
    return tracker.follow(lambda: samples.improved(A))


growing_samples = Method(
    "growing-samples", _run, lambda problem: check_dense(problem, "growing-samples")
)
