"""Alternating least squares: each factor in turn by the normal equations of its mode.

With H the Khatri-Rao product of the other factors and V = HᵀH the Hadamard product of their Gram
matrices, the loss is a quadratic of one factor, of gradient G and curvature V / n over n cells. Its
minimiser is A - n G V⁻¹: the usual MTTKRP · V⁻¹, but written as a step from A, so that neither a
nearly singular V nor what is added to its diagonal moves the fixed points.

Where cells are missing, G knows only what was observed, and the same step is least squares on the
data with the model in place of what is missing. The loss still falls with every step, the more
slowly the more is missing. Weights are taken relative to their maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.loop import Look, Loop
from smartcpd._methods.mm import entries_of
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.comparable import SteadyObjective
from smartcpd._problem.bounds import bounds, check_bounds
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError

RIDGE = 1e-12
"""The share of the trace that is added to the diagonal of V, for components that copy each
other.
"""
POLISHING = 5
"""Number of rounds over the columns of a clipped factor: next to reading the data they cost
nothing.
"""
TINY = 1e-300


def check(problem: Problem) -> None:
    if problem.loss.divergence != 2.0:
        raise IncompatibleError(
            f"Solver 'als' is least squares, loss 'gaussian'; got loss '{problem.loss}'. "
            "Use solver='lbfgs' or solver='smd'."
        )
    check_bounds(problem, "als")


def solved(A: np.ndarray, nG: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The factor that minimises the quadratic with gradient nG at A and curvature V."""
    ridge = RIDGE * np.trace(V) + TINY
    return A - np.linalg.solve(V + ridge * np.eye(len(V)), nG.T).T


def solved_within(
    A: np.ndarray, nG: np.ndarray, V: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return the minimiser within bounds: the free one, clipped, then improved column by column.

    Clipping alone can raise the loss, and it has fixed points that are no solutions. Exact
    minimisation over one column after another has neither fault, from the better of two starts.
    """
    D = np.clip(solved(A, nG, V), low, high) - A
    if np.sum(D * (nG + 0.5 * D @ V)) > 0:
        D = np.zeros_like(D)
    new, slope = A + D, nG + D @ V
    for r in np.tile(np.flatnonzero(np.diag(V)), POLISHING):
        column = np.clip(new[:, [r]] - slope[:, [r]] / V[r, r], low, high)
        slope += (column - new[:, [r]]) * V[r]
        new[:, [r]] = column
    return new


@dataclass
class Sweeps:
    """The state of a run: the factors it is at."""

    problem: Problem
    objective: SteadyObjective
    tracker: Tracker
    A: np.ndarray
    kept: ClassVar = ("A",)

    def look(self) -> Look:
        """The loss that the last sweep led to; it comes with the gradient of the first mode."""
        value, self._first = self._gradient(0)
        return Look(self.A, Estimate(value), "als")

    def move(self) -> None:
        """A sweep over the modes."""
        for mode in range(len(self.problem.shape)):
            G = self._first if mode == 0 else self._gradient(mode)[1]
            self.tracker.check_time()
            self.A = self._updated(mode, G)
        self.tracker.epoch += 1

    def _gradient(self, mode: int) -> tuple[float, np.ndarray]:
        found = self.objective.mode_gradient(self.A, mode)
        self.tracker.entries += entries_of(self.problem)
        return found

    def _updated(self, mode: int, G: np.ndarray) -> np.ndarray:
        """The factors with that of one mode replaced by what its normal equations give."""
        A, storage = self.A.copy(), self.problem.storage
        n = storage.n_observed / storage.heaviest
        starts = offsets(self.problem.shape)
        low, high = bounds(self.problem)
        others = [F for k, F in enumerate(np.split(A, starts[1:-1])) if k != mode]
        V = np.prod([F.T @ F for F in others], axis=0)
        rows = slice(starts[mode], starts[mode + 1])
        if np.isneginf(low[rows]).all() and np.isposinf(high[rows]).all():
            A[rows] = solved(A[rows], n * G, V)
        else:
            A[rows] = solved_within(A[rows], n * G, V, low[rows], high[rows])
        return A


def _run(task: Task) -> Result:
    """Fit by alternating least squares; superfluous components are merged first."""
    problem, settings = task.problem, task.settings
    tracker = Tracker.of_passes(task)
    A = tracker.best.copy()
    objective = SteadyObjective.of(problem, settings.n_threads)
    objective.compile(A)
    return tracker.follow(lambda: Loop(tracker, Sweeps(problem, objective, tracker, A)).run())


als = Method("als", _run, check)
