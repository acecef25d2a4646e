"""The fit of dense data too large for many full passes: a part of it, then growing samples of
fibers.

A fit to some rows of every mode is extended to all of them (`part_fit`). From there on the model is
good nearly everywhere, and is improved on random fibers of the whole tensor: as few as its present
error asks for at first, then several times as many, up to all of them or to what time allows.
"""

from __future__ import annotations

import numpy as np

from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense
from smartcpd._methods.base import Observer, Result, Settings, Solver, Task
from smartcpd._methods.descents import FINISHED, Candidate, Descents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.dense import check_dense
from smartcpd._strategies.starts import random_factors
from smartcpd._strategies.subtensor_fit import PartFit

FULL_PASSES = 1 << 23
"""Up to so many cells passes over all of them are cheap, and nothing of this is needed."""
FIRST_CELLS = 512
"""Number of cells a parameter in the first sample of fibers: the error that sampling adds to the
model's values is then a small share of the noise of a cell.
"""
GROWTH = 4
"""The factor by which samples grow; each halves the error of the one before."""
SAMPLED = 5e-2
"""The share of the resolution of a sample that the last steps on it may still gain."""
MOST_CELLS = 1 << 27
"""Number of cells of the largest sample; passes over more would take seconds each."""
STEPS_A_SAMPLE = 12
"""About how many passes a sample takes, to see whether the time will do."""


class LargeFit:
    """A fit that reads as little of a tensor as it can."""

    def __init__(
        self, problem: Problem, settings: Settings, rng: np.random.Generator, observe: Observer
    ) -> None:
        assert isinstance(problem.storage, Dense)
        self.problem = problem
        self.storage = problem.storage
        self.settings = settings
        self.rng = rng
        self.tracker = Tracker(problem, settings, observe, rng)
        self.descents = Descents(problem, settings, self.tracker, rng)
        self.part = PartFit(problem, settings, self.tracker, self.descents.region, rng)

    def from_scratch(self) -> Result:
        A = stack(random_factors(self.problem, self.problem.rank, self.rng))
        A = self.descents.inside(A)
        self.descents.compile(A)
        self.tracker.begin_with(A)
        return self.tracker.follow(lambda: self._improved(self.part.extended()))

    def from_start(self, start: list[np.ndarray]) -> Result:
        A = stack(start)
        if A.shape[1] > self.problem.rank:
            A = self.descents.reduced(A)
        self.descents.compile(A)
        self.tracker.begin_with(A)
        return self.tracker.follow(lambda: self._improved(A))

    def _improved(self, A: np.ndarray) -> Status:
        """Descents on samples of fibers that grow, until the data or the time is used up."""
        whole, n_cells = self.descents.objective, self.storage.n_cells
        wanted: float = min(FIRST_CELLS * self.problem.freedom, MOST_CELLS)
        while True:
            self.descents.objective = whole.sampled(wanted, self.rng)
            cells = self.descents.objective.n_cells
            full = cells == n_cells
            phase = "finish" if full else f"{cells / n_cells:.2g} of the cells"
            # The objective is compared anew, since another sample has another loss.
            self.tracker.begin_with(A)
            began, entries = self.tracker.elapsed, self.tracker.entries
            found = self.descents.run(A, phase, FINISHED if full else SAMPLED)
            A = found.A
            a_cell = (self.tracker.elapsed - began) / max(self.tracker.entries - entries, 1)
            if full:
                return found.status()
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
            return found.status()
        share = cells / self.storage.n_cells
        more = "" if self.settings.stopping.max_time is None else " More max_time allows more."
        return Status(
            True,
            f"Converged on a sample: the loss settled at {found.loss:.6g} on random fibers with "
            f"{share:.2g} of the cells, {cells / self.problem.freedom:.0f} a parameter.{more}",
        )


def _run(task: Task) -> Result:
    """Fit from scratch, or improve a start of the user's."""
    fit = LargeFit(task.problem, task.settings, task.rng, task.observe)
    return fit.from_start(task.start) if task.settings.given_start else fit.from_scratch()


large = Solver("large", _run, lambda problem: check_dense(problem, "large"), compares_starts=True)
