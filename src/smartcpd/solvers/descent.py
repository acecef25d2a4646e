"""Quasi-Newton descents that a tracker follows: quick ones in float32, exact ones in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smartcpd.history import Status
from smartcpd.objectives import Estimate, objective_of
from smartcpd.objectives.dense import DenseObjective
from smartcpd.objectives.fibers import CELLS_WORTH_THREADS
from smartcpd.problem import Problem
from smartcpd.sample import CellSample
from smartcpd.solvers.base import Settings
from smartcpd.solvers.bounds import bounds
from smartcpd.solvers.merging import merged_by_weight
from smartcpd.solvers.quasi_newton import Function, QuasiNewton, Region
from smartcpd.solvers.tracker import Tracker
from smartcpd.stack import parts

FINISHED = 2e-4
"""What the last steps of a finish may still gain, relative to the resolution of the loss."""
SWITCH = 1e-3
"""The same for a single step, where float64 takes over if it must."""
NARROW = 1e-4
"""The same as `FINISHED`, for a finish that may be in float32, too: if values in it tell such a
gain."""
SETTLED_STEPS = 5
MOST_STEPS = 500
MILESTONE = 20
PATIENCE = 10
"""A run that would take more than so many times the steps between two milestones to come as low as
its rival, at its present pace, has lost."""
PRECISIONS = ("float32", "float64")
DEFAULT_TOL = 0.02
FLOOR = 1e-2
"""Of the column's mean: the least that a merged or bred component begins with."""


@dataclass(frozen=True)
class Candidate:
    """Where a descent ended, and whether it had settled there."""

    A: np.ndarray
    loss: float
    settled: bool

    def status(self, remark: str = "") -> Status:
        """What to say if the fit ends here."""
        if self.settled:
            return Status(True, f"Converged: the loss settled at {self.loss:.6g}. {remark}".strip())
        return Status(
            False,
            f"Stopped after {MOST_STEPS} quasi-Newton steps before the loss settled; fit again "
            "with init= this model to go on.",
        )


class Descents:
    """Descents on the same objective: all cells of a dense tensor, or a sample of them."""

    def __init__(
        self, problem: Problem, settings: Settings, tracker: Tracker, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.tracker = tracker
        self.n_threads = settings.n_threads
        self.rng = rng
        objective = objective_of(problem.storage, problem.loss, settings.n_threads)
        assert isinstance(objective, DenseObjective)
        self.objective = objective
        self.region = Region(problem.shape, problem.loss, *bounds(problem))
        self.sample = CellSample(problem)
        # Users ask for more or less care by tol.
        self._care = settings.stopping.tol / DEFAULT_TOL

    def compile(self, A: np.ndarray) -> None:
        """Have everything compiled before a clock starts."""
        n_cells = CELLS_WORTH_THREADS if self.n_threads > 1 else 1
        some = self.objective.sampled(n_cells, np.random.default_rng(0))
        for dtype in PRECISIONS:
            some.gradient(A.astype(dtype))
        self.sample.resolution(A)

    def inside(self, A: np.ndarray) -> np.ndarray:
        return np.clip(A, self.region.low, self.region.high)

    def reduced(self, A: np.ndarray) -> np.ndarray:
        """A wide model with its components merged to the rank."""
        return self.floored(merged_by_weight(A, self.problem, self.rng))

    def floored(self, A: np.ndarray) -> np.ndarray:
        """Nonnegative entries lifted off 0, where a step could hardly move them."""
        factors = zip(
            parts(A, self.region.shape), parts(self.region.low, self.region.shape), strict=True
        )
        lifted = [
            np.maximum(F, FLOOR * F.mean(axis=0)) if low[0, 0] >= 0 else F for F, low in factors
        ]
        return self.inside(np.concatenate(lifted))

    def resolution(self, A: np.ndarray) -> float:
        """What noise alone does to the minimal loss over the cells of the objective."""
        share = self.objective.storage.n_cells / self.objective.n_cells
        return share * self.sample.resolution(A)

    def run(
        self,
        A: np.ndarray,
        phase: str,
        tau: float = FINISHED,
        most: int = MOST_STEPS,
        rival: float = math.inf,
        rough: bool = False,
    ) -> Candidate:
        """Steps until a few in a row gain less than ``tau`` of the resolution, or ``most``; or
        until it seems that a loss as low as the ``rival``'s is out of reach. A ``rough`` run makes
        all its steps, in float32.
        """
        tau *= self._care
        precision, first_epoch = "float32", self.tracker.epoch
        newton = QuasiNewton(
            self._function(precision), self.region, A, self.rng, self._noise(precision)
        )
        self._note(newton, phase)
        gains = [math.inf] * SETTLED_STEPS
        resolution, milestone = 0.0, math.inf
        for iteration in range(most):
            promised, gained = newton.step()
            self.tracker.epoch += 1
            self._note(newton, phase)
            noise = newton.noise * abs(newton.point.value)
            # Where values do not tell what was gained, gradients still do.
            gains = [*gains[1:], abs(gained) if abs(gained) > noise else promised]
            stuck = promised == gained == 0.0
            if rough and not stuck:
                continue
            if iteration % SETTLED_STEPS == 0:
                resolution = self.resolution(newton.point.A)
            suffices = tau >= NARROW and tau * resolution >= noise and not stuck
            if precision == "float32" and tau < SWITCH and not (rough or suffices):
                if stuck or max(promised, gained) <= max(SWITCH * resolution, noise):
                    precision = "float64"
                    newton.switch(self._function(precision), newton.point.A, self._noise(precision))
                    # Losses of the two precisions do not compare to the last digits.
                    if self.tracker.best_epoch >= first_epoch:
                        self.tracker.begin_with(newton.point.A)
            elif stuck or sum(gains) <= max(tau * resolution, noise):
                return Candidate(newton.point.A, newton.point.value, True)
            if iteration % MILESTONE == 0:
                value = newton.point.value
                if value - rival > PATIENCE * (milestone - value):
                    break
                milestone = value
        return Candidate(newton.point.A, newton.point.value, False)

    def count_pass(self) -> None:
        self.tracker.entries += self.objective.n_cells
        self.tracker.check_time()

    def _noise(self, precision: str) -> float:
        """The relative rounding error of a loss; errors of many cells average out."""
        if precision == "float64":
            return 1e-14
        return float(np.clip(3e-6 / math.sqrt(self.objective.n_cells), 1e-9, 3e-8))

    def _note(self, newton: QuasiNewton, phase: str) -> None:
        self.tracker.note(newton.point.A, Estimate(newton.point.value), phase)

    def _function(self, precision: str) -> Function:
        def value_and_gradient(A: np.ndarray) -> tuple[float, np.ndarray]:
            self.count_pass()
            return self.objective.gradient(A.astype(precision))

        return value_and_gradient
