"""Alternating optimisation by Newton's method, row by row (Wang and Li, for binary tensors).

With the other factors fixed, every row of a factor is a regression of its own on the cells of its
slice. Newton's method solves all of them, each step as long as the row's cost allows; the next
factor follows. Losses that are convex in the model make every regression convex; for the others
the steps are damped until they go downhill.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._methods.alternating import Sweeps, alternate
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.loop import Loop
from smartcpd._methods.mm import entries_of
from smartcpd._methods.row_newton import Rule, solve_rows
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives.comparable import SteadyObjective
from smartcpd._objectives.slices import RowSums, Slices, slices_of
from smartcpd._problem.history import Status

SMALL_STEP = 1e-2
"""The step, relative to the largest entry of its column, after which a factor is left for the next:
Newton's method then leaves about the square of it, and the other factors will change more."""


@dataclass(frozen=True)
class Watched:
    """The costs of a factor's rows; the tracker counts what is read for them, and the time."""

    slices: Slices
    tracker: Tracker

    def at(self, A: np.ndarray) -> RowSums:
        self._begin()
        return self.slices.at(A)

    def values(self, A: np.ndarray) -> np.ndarray:
        self._begin()
        return self.slices.values(A)

    def _begin(self) -> None:
        self.tracker.check_time()
        self.tracker.entries += entries_of(self.tracker.problem)


@dataclass
class RowNewton:
    """Updates of one factor after the other by the minima of its rows' costs."""

    tracker: Tracker
    objective: SteadyObjective
    kept: ClassVar[tuple[str, ...]] = ()

    def value(self, A: np.ndarray) -> float:
        self.objective.settle(A)
        self.tracker.entries += entries_of(self.tracker.problem)
        return self.objective.value(A)

    def updated(self, A: np.ndarray, mode: int) -> np.ndarray:
        problem, n_threads = self.tracker.problem, self.tracker.settings.n_threads
        factors = parts(A, problem.shape)
        slices = slices_of(problem.storage, problem.loss, factors, mode, n_threads)
        # Rows sum over their cells, and the loss is a mean: penalties count as often.
        n_observed = float(problem.storage.n_observed)
        rule = Rule(problem.constraints[mode], n_observed, self.tracker.check_time)
        return solve_rows(Watched(slices, self.tracker), factors[mode], rule, SMALL_STEP).A


def swept(tracker: Tracker, A: np.ndarray) -> Status:
    """Go on by row-wise steps where another method found no way down: where single rows are far
    from their minima, no common step suits them all.
    """
    objective = SteadyObjective.of(tracker.problem, tracker.settings.n_threads)
    objective.compile(A)
    tracker.restart()
    updates = RowNewton(tracker, objective)
    status: Status = Loop(tracker, Sweeps(tracker, updates, "row-newton", A.copy()), updates).run()
    return status


def _run(task: Task) -> Result:
    """Fit by row-wise Newton steps; superfluous components are merged first."""
    tracker = Tracker.of_passes(task)
    objective = SteadyObjective.of(task.problem, task.settings.n_threads)
    objective.compile(tracker.best)
    return alternate(tracker, RowNewton(tracker, objective), "row-newton")


row_newton = Method("row-newton", _run, takes_sums=True)
