"""Majorisation-minimisation: multiplicative updates, with extrapolation.

Events are fitted as a mixture, all modes at once; other measurements factor after factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smartcpd._methods import multiplicative
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.expected_counts import expected_counts
from smartcpd._methods.extrapolation import descend
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.multiplicative import Factors, Updates
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Objective, objective_of
from smartcpd._objectives.backgrounds import HotCells
from smartcpd._objectives.sparse import SparseObjective
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss

RELAXATION = 1.5
"""The power by which EM's step is lengthened; up to 2 it still goes downhill near a solution."""
REFRESH = 10
"""Number of passes after which the cells that matter to the background are looked up anew."""


@dataclass
class Passes:
    """Full passes over the data: each gives the loss of a mixture and a better mixture."""

    objective: Objective
    loss: Loss
    n_cells: float
    """The number of observed cells, or the sum of their weights, scaled to a largest one of 1."""
    carriers: tuple[int, ...]
    """Modes whose columns have any sum, and carry the weights; without any, those stay one."""
    done: int = 0
    looked_up: np.ndarray | None = None
    """The factors that the background was made for."""
    kept: ClassVar[tuple[str, ...]] = ("done", "looked_up")

    @classmethod
    def over(cls, problem: Problem, n_threads: int, loss: Loss | None = None) -> Passes:
        loss = loss or problem.loss
        objective = objective_of(problem.storage, loss, n_threads)
        carriers = tuple(n for n, c in enumerate(problem.constraints) if c.cone)
        n_cells = problem.storage.n_observed / problem.storage.heaviest
        return cls(objective, loss, float(n_cells), carriers)

    def compile(self, A: np.ndarray) -> None:
        """Have everything compiled before a clock starts."""
        self.objective.compile(A)

    def step(
        self, mixture: Mixture, careful: bool = False, smoothing: float = 0.0
    ) -> tuple[float, Mixture]:
        """The loss of a mixture, and the mixture after an EM step from it, lengthened or not."""
        self._look_up_background(mixture)
        value, counts = expected_counts(self.objective, self.loss, mixture, self.n_cells)
        target = Mixture.from_counts(counts, mixture.shape, smoothing)
        if not self.carriers:
            target = target.held(mixture)
        return value, target if careful else target.beyond(mixture, RELAXATION)

    def factors(self, mixture: Mixture) -> np.ndarray:
        return mixture.carried_by(self.carriers)

    def put_back(self, values: dict[str, Any]) -> None:
        """Restore the state of another process; backgrounds follow from the factors."""
        self.done, self.looked_up = values["done"], values["looked_up"]
        if self.looked_up is not None:
            self.objective = self.objective.with_background(self.looked_up)

    def _look_up_background(self, mixture: Mixture) -> None:
        if isinstance(self.objective, SparseObjective):
            background = self.objective.background
            A = mixture.stacked()
            due = isinstance(background, HotCells) and (
                self.done % REFRESH == 0 or background.is_stale(A)
            )
            if background is None or due:
                self.objective = self.objective.with_background(A)
                self.done, self.looked_up = 0, A
        self.done += 1


def check(problem: Problem) -> None:
    """Raise an error for problems that no update serves."""
    loss = problem.loss
    if loss.pseudo_count_slope is None:
        multiplicative.check(problem)
        return
    for mode, constraint in enumerate(problem.constraints):
        if constraint.name not in ("nonnegative", "simplex"):
            raise IncompatibleError(
                f"Multiplicative updates serve constraints nonnegative and simplex under loss "
                f"'{loss}'; got '{constraint}' for mode {mode}. Use solver='md' or solver='smd'."
            )


def _run(task: Task) -> Result:
    """Fit by multiplicative updates from a start; superfluous components are merged first."""
    problem, settings = task.problem, task.settings
    tracker = Tracker.of_passes(task)
    A = tracker.best.copy()
    entries = entries_of(problem)
    if problem.loss.pseudo_count_slope is None:
        updates = Updates.over(problem, settings.n_threads)
        updates.compile(A)
        entries *= len(problem.shape)

        def loop() -> Status:
            return descend(tracker, updates, Factors.of(A), entries, "mm")

    else:
        passes = Passes.over(problem, settings.n_threads)
        passes.compile(A)
        mixture = Mixture.of(A, problem.shape)

        def loop() -> Status:
            return descend(tracker, passes, mixture, entries, "mm")

    return tracker.follow(loop)


def entries_of(problem: Problem) -> int:
    """Return the number of entries that a full pass over the data reads."""
    return problem.storage.n_stored


mm = Method("mm", _run, check, reads_parts=True)
