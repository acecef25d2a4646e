"""Least squares as a function of one factor: a quadratic, which each method minimises its own way.

With H the Khatri-Rao product of the other factors and V = HᵀH the Hadamard product of their Gram
matrices, the loss is a quadratic of one factor, of gradient G and curvature V / n over n cells.

Where cells are missing, G knows only what was observed, and the quadratic is that of the data with
the model in place of what is missing. It lies above the loss, which therefore falls with every
step, the more slowly the more is missing. Weights are taken relative to their maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._methods.alternating import alternate
from smartcpd._methods.base import Result, Task
from smartcpd._methods.mm import entries_of
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives.comparable import SteadyObjective
from smartcpd._problem.problem import Problem
from smartcpd.constraints import Constraint
from smartcpd.errors import IncompatibleError


class Quadratic(NamedTuple):
    """n times the mean loss as a function of one factor: <slope, D> + <D V, D> / 2 at A + D, up to
    a constant.
    """

    A: np.ndarray
    slope: np.ndarray
    V: np.ndarray
    n: float
    mode: int
    constraint: Constraint


Solve = Callable[[Quadratic], np.ndarray]
"""A function that takes a quadratic and returns a factor at which it is lower, or lowest."""


def check_loss(problem: Problem, solver: str) -> None:
    if problem.loss.divergence != 2.0:
        raise IncompatibleError(
            f"Solver '{solver}' is least squares, loss 'gaussian'; got loss '{problem.loss}'. "
            "Use solver='lbfgs' or solver='smd'."
        )


@dataclass
class LeastSquares:
    """Updates of one factor after the other by what minimises, or lowers, its quadratic."""

    tracker: Tracker
    objective: SteadyObjective
    solve: Solve
    kept: ClassVar[tuple[str, ...]] = ()

    def value(self, A: np.ndarray) -> float:
        """The loss; it comes with the gradient that the next sweep begins with."""
        value, self._first = self._gradient(A, 0)
        return value

    def updated(self, A: np.ndarray, mode: int) -> np.ndarray:
        problem = self.tracker.problem
        G = self._first if mode == 0 else self._gradient(A, mode)[1]
        n = problem.storage.n_observed / problem.storage.heaviest
        factors = parts(A, problem.shape)
        V = gram_of_others(factors, mode)
        rule = problem.constraints[mode]
        return self.solve(Quadratic(factors[mode], n * G, V, n, mode, rule))

    def _gradient(self, A: np.ndarray, mode: int) -> tuple[float, np.ndarray]:
        found = self.objective.mode_gradient(A, mode)
        self.tracker.entries += entries_of(self.tracker.problem)
        return found


def gram_of_others(factors: list[np.ndarray], mode: int) -> np.ndarray:
    """HᵀH, from the Gram matrices of all factors but one."""
    return np.prod([F.T @ F for k, F in enumerate(factors) if k != mode], axis=0)


def alternate_squares(task: Task, name: str, solve: Solve, *others: Any) -> Result:
    """Fit by alternating least squares of some kind; superfluous components are merged first.

    ``others`` are objects that ``solve`` changes.
    """
    tracker = Tracker.of_passes(task)
    objective = SteadyObjective.of(task.problem, task.settings.n_threads)
    objective.compile(tracker.best)
    return alternate(tracker, LeastSquares(tracker, objective, solve), name, *others)
