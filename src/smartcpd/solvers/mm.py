"""Majorisation-minimisation: multiplicative updates of all modes at once, with extrapolation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smartcpd.backgrounds import HotCells
from smartcpd.history import Status
from smartcpd.losses import Loss
from smartcpd.objectives import Estimate, Objective, objective_of
from smartcpd.objectives.sparse import SparseObjective
from smartcpd.problem import Problem
from smartcpd.solvers.base import Observer, Result, Settings, Solver
from smartcpd.solvers.expected_counts import check, expected_counts
from smartcpd.solvers.merging import merged
from smartcpd.solvers.mixture import Mixture
from smartcpd.solvers.tracker import Tracker
from smartcpd.stack import stack

RELAXATION = 1.5
"""EM's step, lengthened in the logarithm; up to 2 it still goes downhill near a solution."""
MOMENTUM = 0.9
REFRESH = 10
"""Passes after which the cells that matter to the background are looked up anew."""


@dataclass
class Passes:
    """Full passes over the data: each gives the loss of a mixture and a better mixture."""

    objective: Objective
    loss: Loss
    n_cells: float
    done: int = 0

    @classmethod
    def over(cls, problem: Problem, n_threads: int, loss: Loss | None = None) -> Passes:
        loss = loss or problem.loss
        objective = objective_of(problem.storage, loss, n_threads)
        return cls(objective, loss, float(problem.storage.n_cells))

    def compile(self, A: np.ndarray) -> None:
        """Have everything compiled before a clock starts."""
        if isinstance(self.objective, SparseObjective):
            self.objective.compile()
        else:
            self.objective.gradient(A)

    def step(self, mixture: Mixture, smoothing: float = 0.0) -> tuple[float, Mixture]:
        """The loss of a mixture, and the mixture after a lengthened EM step from it."""
        self._look_up_background(mixture)
        value, counts = expected_counts(self.objective, self.loss, mixture, self.n_cells)
        target = Mixture.from_counts(counts, mixture.shape, smoothing)
        return value, target.beyond(mixture, RELAXATION)

    def _look_up_background(self, mixture: Mixture) -> None:
        if isinstance(self.objective, SparseObjective):
            background = self.objective.background
            A = mixture.stacked()
            due = isinstance(background, HotCells) and (
                self.done % REFRESH == 0 or background.is_stale(A)
            )
            if background is None or due:
                self.objective = self.objective.with_background(A)
                self.done = 0
        self.done += 1


def descend(tracker: Tracker, passes: Passes, mixture: Mixture, entries: int, phase: str) -> Status:
    """Extrapolated passes until the tracker says stop.

    A pass begins where the last two mixtures point to; if the loss there is higher than before, the
    next one begins at the last mixture that was accepted, without momentum.
    """
    accepted, loss_before, previous = mixture, math.inf, None
    momentum = 1.0
    tracker.begin_with(mixture.balanced())
    while True:
        point = mixture
        if previous is not None:
            longer = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            point = mixture.beyond(previous, 1 + min((momentum - 1) / longer, MOMENTUM))
            momentum = longer
        value, following = passes.step(point)
        tracker.entries += entries
        tracker.epoch += 1
        if value > loss_before and previous is not None:
            mixture, previous, momentum = accepted, None, 1.0
            if tracker.out_of_time:
                status = tracker.record(accepted.balanced(), Estimate(loss_before), phase)
                assert status is not None
                return status
            continue
        status = tracker.record(point.balanced(), Estimate(value), phase)
        if status is not None:
            return status
        accepted, loss_before = point, value
        mixture, previous = following, mixture


def _run(
    problem: Problem,
    settings: Settings,
    start: list[np.ndarray],
    rng: np.random.Generator,
    observe: Observer,
) -> Result:
    """Fit by multiplicative updates from a start; superfluous components are merged first."""
    A = stack(start)
    if A.shape[1] > problem.rank:
        A = merged(A, problem)
    tracker = Tracker(problem, settings.for_full_passes(), observe)
    passes = Passes.over(problem, settings.n_threads)
    mixture = Mixture.of(A, problem.shape)
    passes.compile(A)
    tracker.begin_with(A)
    return tracker.follow(lambda: descend(tracker, passes, mixture, entries_of(problem), "mm"))


def entries_of(problem: Problem) -> int:
    """Entries that a full pass reads."""
    return getattr(problem.storage, "nnz", problem.storage.n_cells)


mm = Solver("mm", _run, check)
