"""L-BFGS-B: SciPy's quasi-Newton method for bounds, on exact values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.loop import ended_by_residual
from smartcpd._methods.mm import entries_of
from smartcpd._methods.tracker import EndedError, Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.comparable import SteadyObjective
from smartcpd._problem.bounds import bounds, check_smooth
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem

REFRESH = 50
"""Iterations after which an approximate background is settled anew. More than multiplicative
updates make, since what the method has learnt of the curvature is lost each time."""
UNLIMITED = 1 << 30


def check(problem: Problem) -> None:
    check_smooth(problem, "lbfgs")


@dataclass
class ScipyDescent:
    """A run of SciPy's method, or one after another where the function has to be settled anew."""

    objective: SteadyObjective
    tracker: Tracker
    A: np.ndarray
    limits: list[tuple[float, float]]
    entries: int
    begun_at: np.ndarray | None = None
    """The factors at which the present run of SciPy's method began."""
    answers: list[tuple[float, np.ndarray]] = field(default_factory=list)
    """The values and gradients that the method was told since. SciPy keeps its state to itself: a
    fit that is resumed brings the method there again by the same answers, without a pass over the
    data.
    """
    recorded: int = 0
    """Number of iterations since then that are in the history."""
    kept: ClassVar = ("begun_at", "answers", "recorded")

    def solve(self) -> Status:
        from scipy.optimize import minimize  # slow to import, and rarely needed

        self._record(self.objective.value(self.A))
        seen = self.tracker.loop(self)

        def after_iteration(intermediate_result: Any) -> None:
            self._after_iteration(intermediate_result, seen)

        while True:
            if self.begun_at is None:
                self.begun_at = self.A
            self.A = self.begun_at
            self.asked = self.iterations = 0
            self.objective.settle(self.A)
            moves = self.objective.moves
            # SciPy's own tests are relative to 1 rather than to the loss. They are off: the
            # tracker decides, and SciPy ends where an iteration changes nothing any more. Nothing
            # else in the method depends on the scale of the loss.
            found = minimize(
                self._value_and_gradient,
                self.A.reshape(-1),
                jac=True,
                method="L-BFGS-B",
                bounds=self.limits,
                callback=after_iteration,
                options={
                    "ftol": 0.0,
                    "gtol": 0.0,
                    "maxiter": REFRESH if moves else UNLIMITED,
                    "maxfun": UNLIMITED,
                },
            )
            self.begun_at, self.answers, self.recorded = None, [], 0
            settled = found.nit <= 1 and not self.objective.is_stale(self.A)
            if settled or not moves:
                # SciPy may call it convergence or a failed line search, and both can happen
                # elsewhere than at a solution.
                return ended_by_residual(self.tracker, self.A, "an iteration of L-BFGS-B", "smd")

    def _value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.asked += 1
        if self.asked <= len(self.answers):
            return self.answers[self.asked - 1]
        value, gradient = self._computed(x)
        if self.tracker.keeps:
            self.answers.append((value, gradient.copy()))
        return value, gradient

    def _computed(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.tracker.check_time()
        self.tracker.entries += self.entries
        problem = self.tracker.problem
        shared = problem.shared
        A = shared.mean(x.reshape(self.A.shape))
        value, gradient = self.objective.gradient(A)
        if problem.penalises:
            value += self.tracker.penalty(A)
            gradient = gradient + problem.penalty_slope(A)
        gradient = shared.mean(gradient)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return self._wall(), np.zeros_like(x)
        return value, gradient.reshape(-1)

    def _wall(self) -> float:
        """Return the number that stands for a loss that overflows.

        Line searches interpolate: an infinite value would end them, and a huge one would make them
        begin again with a tiny step.
        """
        first, last = self.tracker.history[0].loss, self.tracker.history[-1].loss
        return last + abs(first) + abs(last)

    def _after_iteration(self, intermediate_result: Any, seen: Callable[[], None]) -> None:
        # Equal gradients keep equal entries equal, up to the order in which SciPy adds.
        self.A = self.tracker.problem.shared.mean(
            intermediate_result.x.reshape(self.A.shape)
        ).copy()
        self.iterations += 1
        if self.iterations > self.recorded:
            self.tracker.epoch += 1
            penalty = self.tracker.penalty(self.A)
            self._record(float(intermediate_result.fun) - penalty)
            self.recorded = self.iterations
            seen()
        if self.objective.is_stale(self.A):
            raise StopIteration

    def _record(self, value: float) -> None:
        status = self.tracker.record(self.A, Estimate(value), "lbfgs")
        if status is not None:
            raise EndedError(status)


def _run(task: Task) -> Result:
    """Fit by L-BFGS-B; superfluous components are merged first."""
    problem, settings = task.problem, task.settings
    tracker = Tracker.of_passes(task)
    A = tracker.best.copy()
    objective = SteadyObjective.of(problem, settings.n_threads)
    low, high = (np.broadcast_to(b, A.shape).reshape(-1) for b in bounds(problem))
    objective.compile(A)
    limits = list(zip(low.tolist(), high.tolist(), strict=True))
    return tracker.follow(ScipyDescent(objective, tracker, A, limits, entries_of(problem)).solve)


lbfgs = Method(
    "lbfgs",
    _run,
    check,
    reads_parts=True,
    takes_entry_bounds=True,
    shares_factors=True,
    takes_sums=True,
)
