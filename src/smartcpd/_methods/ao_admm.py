"""Alternating optimisation with ADMM inside (Huang, Sidiropoulos and Liavas).

A factor A has two copies: one that the loss sees and one inside the constraint, and a dual that
draws them together. Under least squares the first is a solution of the normal equations with some
stiffness added. Under another loss the model is split from the factor, too: a cell's proximal map
gives its best value near the model, and the first copy is a least squares fit to these. A visit
makes a few such steps; the duals are kept for the next visit, those of the cells for all modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from smartcpd._common.stacked import offsets, parts
from smartcpd._data.storage import Dense
from smartcpd._methods.alternating import alternate
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.least_squares import Quadratic, alternate_squares, gram_of_others
from smartcpd._methods.mm import entries_of
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives.comparable import SteadyObjective
from smartcpd._objectives.slices.dense import products
from smartcpd._problem.problem import Problem
from smartcpd.constraints import Constraint
from smartcpd.errors import IncompatibleError

INNER_STEPS = 10
TINY = 1e-300
STIFFENING = 2.0
"""How much stiffer the tie between model and cells is than the loss bends on average. Measured on
counts 12x10x8, rank 2, two seeds, with and without weights, 1000 inner steps: 1 is quickest on most
and may oscillate (an excess of up to 3e-4 is left), 3 does not (4e-5), 10 is slow (8e-4). On three
other seeds, 2 left at most 8e-10 after 400 sweeps.
"""
SMALL = 1e-6
"""Copies that differ by less, and change by less, relative to their size, end a visit."""


def check(problem: Problem) -> None:
    loss = problem.loss
    if loss.divergence == 2.0:
        return
    if not loss.convex:
        raise IncompatibleError(
            "Solver 'ao-admm' serves losses that are convex in the model (gaussian, poisson, "
            "huber, poisson-log, bernoulli-logit, alpha, beta from 1 to 2); got loss "
            f"'{loss}'. Use solver='lbfgs' or solver='row-newton'."
        )
    if problem.storage.absent != "none":
        raise IncompatibleError(
            "Solver 'ao-admm' keeps a value for every cell under any loss but 'gaussian', and so "
            f"serves dense arrays; got sparse data under loss '{loss}'. Use solver='mm' or "
            "solver='lbfgs', or pass a dense array."
        )


@dataclass
class Duals:
    """The multipliers that draw the two copies of each factor together, in units of a gradient."""

    Y: np.ndarray
    shape: tuple[int, ...]
    kept: ClassVar = ("Y",)

    def of(self, mode: int) -> np.ndarray:
        return parts(self.Y, self.shape)[mode]


def steps(
    A: np.ndarray,
    Y: np.ndarray,
    V: np.ndarray,
    constraint: Constraint,
    n: float,
    target: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """The factor after some steps from A; the dual Y changes in place.

    ``target`` takes the copy that the loss sees and returns the right-hand side F of the equations
    A V = F. Sums are over n cells, of which the loss is a mean.
    """
    stiffness = np.trace(V) / len(V)
    if not stiffness > 0:
        return A  # nothing depends on this factor: another factor of each component is zero
    inverse = np.linalg.inv(V + stiffness * np.eye(len(V)))
    weight = np.full_like(A, stiffness / n)
    seen, U = A, Y / stiffness
    for _ in range(INNER_STEPS):
        seen = (target(seen) + stiffness * (A + U)) @ inverse
        before, A = A, constraint.apply(seen - U, weight)
        U += A - seen
        size = np.linalg.norm(A)
        apart, moved = np.linalg.norm(A - seen), np.linalg.norm(A - before)
        if max(apart, moved) <= SMALL * size:
            break
    Y[:] = stiffness * U
    return A


@dataclass
class SplitModel:
    """Updates under a convex loss: the cells' own values, and factors that fit them."""

    tracker: Tracker
    objective: SteadyObjective
    duals: Duals
    pulls: np.ndarray
    """The multipliers that draw the model to the cells' own values: minus the slopes there."""
    kept: ClassVar[tuple[str, ...]] = ("pulls",)

    def value(self, A: np.ndarray) -> float:
        self.tracker.entries += entries_of(self.tracker.problem)
        return self.objective.value(A)

    def updated(self, A: np.ndarray, mode: int) -> np.ndarray:
        problem = self.tracker.problem
        loss, storage = problem.loss, problem.stored_as(Dense)
        factors = parts(A, problem.shape)
        H = products([F for k, F in enumerate(factors) if k != mode])
        x, w = unfolded(storage, mode)
        pulls = np.moveaxis(self.pulls, mode, 0)
        # One curvature for all cells, as the factor feels it: its rows then share their equations.
        bends = (w * loss.expected_bends(factors[mode] @ H.T)).mean(axis=0)
        bend = STIFFENING * float(np.average(bends, weights=(H * H).sum(axis=1) + TINY)) + TINY
        stiffness = bend / np.where(w > 0, w, 1.0)

        def target(copy: np.ndarray) -> np.ndarray:
            self.tracker.check_time()
            self.tracker.entries += entries_of(problem)
            model = copy @ H.T
            near = model - pulls.reshape(x.shape) / bend
            cells = np.where(w > 0, loss.proximal(x, near, stiffness), near)
            pulls[:] = (bend * (cells - near)).reshape(pulls.shape)
            return (bend * cells + pulls.reshape(x.shape)) @ H

        V = bend * gram_of_others(factors, mode)
        n, rule = float(storage.n_observed), problem.constraints[mode]
        return steps(factors[mode], self.duals.of(mode), V, rule, n, target)


def unfolded(storage: Dense, mode: int) -> tuple[np.ndarray, np.ndarray]:
    """Data and weights with a row for each slice of a mode; what a missing cell holds is not
    read."""
    rows = (storage.shape[mode], -1)
    x = np.moveaxis(storage.array, mode, 0).astype(np.float64).reshape(rows)
    if storage.weights is None:
        return x, np.ones_like(x)
    w = np.moveaxis(storage.weights, mode, 0).astype(np.float64).reshape(rows)
    return np.where(w > 0, x, 1.0), w  # 1 is a number that every loss accepts


def _run(task: Task) -> Result:
    """Fit by AO-ADMM; superfluous components are merged first."""
    problem = task.problem
    duals = Duals(np.zeros((int(offsets(problem.shape)[-1]), problem.rank)), problem.shape)
    if problem.loss.divergence != 2.0:
        tracker = Tracker.of_passes(task)
        objective = SteadyObjective.of(problem, task.settings.n_threads)
        objective.compile(tracker.best)
        split = SplitModel(tracker, objective, duals, np.zeros(problem.shape))
        return alternate(tracker, split, "ao-admm", duals)

    def solve(q: Quadratic) -> np.ndarray:
        F = q.A @ q.V - q.slope
        return steps(q.A, duals.of(q.mode), q.V, q.constraint, q.n, lambda copy: F)

    return alternate_squares(task, "ao-admm", solve, duals)


ao_admm = Method("ao-admm", _run, check)
