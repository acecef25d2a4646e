"""Generalised Gauss-Newton: the second-order method for losses with a curvature.

Each step minimises a quadratic model of the objective within the bounds. Its matrix is J' W J, with
J the derivative of the model by the factors and W the curvature of the cells' losses: what is left
of the Hessian when the model is taken as linear. It is never formed; conjugate gradients need
products with it, one pass over the data each.

The matrix is singular, since factors can be rescaled against each other without a change of the
model. Levenberg-Marquardt damping takes care of this and of steps that lead too far: it rises and
falls with how much of the promised gain came true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.bounded_quadratic import BoundedQuadratic
from smartcpd._methods.loop import Look, Loop, ended_by_residual
from smartcpd._methods.mm import entries_of
from smartcpd._methods.preconditioner import Preconditioner
from smartcpd._methods.quasi_newton import Point
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate, objective_of
from smartcpd._objectives.dense import DenseObjective
from smartcpd._objectives.fisher_weights import Marginals
from smartcpd._objectives.sparse import SparseObjective
from smartcpd._problem.bounds import bounds, check_bounds
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._problem.stopping import ROUNDING
from smartcpd.errors import IncompatibleError

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e9
"""The first, least and largest damping, relative to the diagonal of the matrix."""
PRODUCTS = 50
"""The most products with the matrix that a step may take."""
FORCING = 0.1
"""The share to which a step reduces the gradient of its quadratic, at first; close to the solution
it is reduced further, or the last steps would gain no more than gradient steps do.
"""
ACCEPTED = 1e-4
"""A step is taken if it brings at least this share of the promised gain."""
KEPT_SLOPE = 0.5
"""The share of its slope that a step must keep when it is made conjugate to the last one."""
STEEP, LONGEST = 0.1, 3.0
"""The slope at the end of a step, relative to its beginning, from which on its length is corrected;
and to what length at most."""
BELOW_ROUNDING = 1e-15
"""A gain below this share of the loss cannot be told from nothing."""


def check(problem: Problem) -> None:
    check_bounds(problem, "ggn")
    if problem.storage.absent == "zero" and problem.loss.background is None:
        raise IncompatibleError(
            "Solver 'ggn' needs the curvature of all zeros of a sparse tensor in closed form, "
            f"which loss '{problem.loss}' does not have. Use solver='lbfgs', or give the tensor as "
            "a dense array."
        )


@dataclass
class GaussNewton:
    """The state of a run: where it is, and how far it trusts its quadratic model."""

    objective: DenseObjective | SparseObjective
    tracker: Tracker
    low: np.ndarray
    high: np.ndarray
    rng: np.random.Generator
    entries: int
    damping: float = FIRST_DAMPING
    first_size: float = 0.0
    point: Point = field(init=False)
    last: Point | None = None
    kept: ClassVar = ("damping", "first_size", "point", "last")

    def solve(self) -> Status:
        self.point = self._evaluate(self._clip(self.tracker.best))
        return Loop(self.tracker, self).run()

    def look(self) -> Look:
        return Look(self.point.A, Estimate(self.point.value), "ggn")

    def move(self) -> Status | None:
        """A step; a status if there is none that lowers the loss."""
        point = self.point
        found = self._step(point)
        self.tracker.epoch += 1
        if found is None:
            return ended_by_residual(self.tracker, point.A, "a Gauss-Newton step", "lbfgs")
        self.last, self.point = point, found
        return None

    def _step(self, point: Point) -> Point | None:
        """Return the next point, lower than this one; None if there is none."""
        problem = self.tracker.problem
        storage = problem.storage
        row_weights = storage.row_weights if storage.weighted else None
        weights = Marginals.at(point.A, problem.shape, problem.loss, self.rng, row_weights)
        guess = Preconditioner.at(point.A, problem.shape, weights)
        growth = 2.0
        while self.damping < MOST_DAMPING:
            quadratic = self._quadratic(point, guess)
            size = quadratic.size()
            self.first_size = self.first_size or size
            forcing = min(FORCING, math.sqrt(size / self.first_size)) if size else 0.0
            D, promised = quadratic.minimise(forcing * size, PRODUCTS)
            if not promised > BELOW_ROUNDING * abs(point.value):
                return None
            for step in (self._conjugate(point, D), D):
                found = None if step is None else self._tried(point, step, promised)
                if found is not None:
                    return found
            if promised < ROUNDING * abs(point.value):
                return None
            self.damping *= growth
            growth *= 2
        return None

    def _conjugate(self, point: Point, D: np.ndarray) -> np.ndarray | None:
        """The step D made conjugate to the last one, if that leads downhill as well.

        What Gauss-Newton neglects grows with the noise of the data, and is much the same from step
        to step. Alone, steps would undo a part of each other; two gradients tell how large a part.
        """
        if self.last is None:
            return None
        S, Y = point.A - self.last.A, point.gradient - self.last.gradient
        bend = float(np.vdot(S, Y))
        if not bend > 0:
            return None
        C = D - float(np.vdot(D, Y)) / bend * np.where(D == 0, 0.0, S)
        slope, plain = (float(np.vdot(point.gradient, B)) for B in (C, D))
        return C if slope < KEPT_SLOPE * plain else None

    def _tried(self, point: Point, step: np.ndarray, promised: float) -> Point | None:
        """Return the point that a step leads to, if it is low enough; the damping is adapted."""
        found = self._evaluate(self._clip(point.A + step))
        kept = (point.value - found.value) / promised
        if not (kept > ACCEPTED and np.isfinite(found.gradient).all()):
            return None
        fall = max(1 / 3, 1 - (2 * min(kept, 1.0) - 1) ** 3)
        self.damping = max(self.damping * fall, LEAST_DAMPING)
        return self._adjusted(point, found)

    def _adjusted(self, point: Point, found: Point) -> Point:
        """Return the point after a step of the right length, where the slope at its end says that
        it was not: next to the step, one more pass costs little.
        """
        D = found.A - point.A
        before, after = (float(np.vdot(P.gradient, D)) for P in (point, found))
        if before >= 0 or abs(after) <= STEEP * abs(before):
            return found
        length = min(before / (before - after), LONGEST) if after > before else LONGEST
        other = self._evaluate(self._clip(point.A + length * D))
        better = other.value < found.value and np.isfinite(other.gradient).all()
        return other if better else found

    def _quadratic(self, point: Point, guess: Preconditioner) -> BoundedQuadratic:
        """The damped model of the objective around a point."""
        # All of it keeps to factors that are equal where modes share one.
        shared = self.tracker.problem.shared
        scale, inverse = shared.mean(guess.scale()), guess.damped(self.damping)
        ridge = self.damping * scale

        def product(V: np.ndarray) -> np.ndarray:
            self._count_pass()
            return shared.mean(self.objective.curvature_product(point.A, V)) + ridge * V

        def damped(V: np.ndarray) -> np.ndarray:
            return shared.mean(inverse.apply(V))

        return BoundedQuadratic(
            product,
            damped,
            scale + ridge,
            point.gradient,
            self.low - point.A,
            self.high - point.A,
        )

    def _evaluate(self, A: np.ndarray) -> Point:
        self._count_pass()
        with np.errstate(over="ignore", invalid="ignore"):  # a trial may go too far
            A = self.tracker.problem.shared.mean(A)
            value, gradient = self.objective.gradient(A)
        return Point(A, value, self.tracker.problem.shared.mean(gradient))

    def _clip(self, A: np.ndarray) -> np.ndarray:
        return np.clip(A, self.low, self.high)

    def _count_pass(self) -> None:
        self.tracker.check_time()
        self.tracker.entries += self.entries


def _run(task: Task) -> Result:
    """Fit by Gauss-Newton steps; superfluous components are merged first."""
    problem, settings = task.problem, task.settings
    tracker = Tracker.of_passes(task)
    A = tracker.best.copy()
    objective = objective_of(problem.storage, problem.loss, settings.n_threads)
    assert isinstance(objective, DenseObjective | SparseObjective)
    low, high = bounds(problem)
    objective.gradient(A)
    objective.curvature_product(A, A)
    descent = GaussNewton(objective, tracker, low, high, task.rng, entries_of(problem))
    return tracker.follow(descent.solve)


ggn = Method("ggn", _run, check, takes_entry_bounds=True, shares_factors=True)
