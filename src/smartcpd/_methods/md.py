"""Block mirror descent on full gradients: the deterministic method the paper compares with.

Each mode in turn takes a mirror step along its exact gradient, completed by its constraint. The
step is as long as the Bregman majorisation allows,

    F(A⁺) <= F(A) + <G, A⁺ - A> + D_phi(A⁺, A) / eta,

under which the objective, penalties included, never increases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._methods.anderson import Anderson
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.loop import Look, Loop
from smartcpd._methods.mm import REFRESH, entries_of
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.comparable import SteadyObjective
from smartcpd._problem.history import Status
from smartcpd._problem.stopping import ROUNDING
from smartcpd.constraints import Constraint
from smartcpd.mirrors import Mirror

MARGIN = 0.9
"""The next step uses this share of the length that the last one proved to be safe."""
LEAST = 0.1
"""The least share of a positive entry that a leap leaves of it."""
TINY = 1e-300


@dataclass
class ModeSteps:
    """One mode: its rows, its rules and the length of its steps."""

    rows: slice
    constraint: Constraint
    mirror: Mirror
    eta: float = 0.0
    kept: ClassVar = ("eta",)

    def moved(self, A: np.ndarray, G: np.ndarray) -> np.ndarray:
        """The factor after a mirror step from A, inside its constraint."""
        return self.constraint.stepped(A, G, np.full_like(A, 1 / self.eta), self.mirror)

    def first_eta(self, A: np.ndarray, G: np.ndarray) -> float:
        """A step that changes a typical entry by about its own size."""
        typical, steep = _size(A), _size(G)
        if not 0 < steep < math.inf:
            return 1.0
        return float(np.clip(self.mirror.unit(typical or 1.0) / steep, TINY, 1 / TINY))


def _size(B: np.ndarray) -> float:
    """The root of the mean square, of numbers whose squares may be out of range, too."""
    largest = float(np.abs(B).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    return largest * float(np.sqrt(np.mean((B / largest) ** 2)))


@dataclass
class MirrorDescent:
    """The state of a run: where it is, and what the objective is there."""

    objective: SteadyObjective
    tracker: Tracker
    modes: list[ModeSteps]
    A: np.ndarray
    entries: int
    leaps: Anderson | None = None
    """Where sweeps lead to, if the run may leap there."""
    loss: float = math.inf
    kept: ClassVar = ("A", "loss", "objective")

    def solve(self) -> Status:
        """Sweeps over the modes until the tracker says stop."""
        self.loss = self._value(self.A)
        more = [] if self.leaps is None else [self.leaps]
        return Loop(self.tracker, self, *self.modes, *more).run()

    def look(self) -> Look:
        return Look(self.A, Estimate(self.loss), "md")

    def move(self) -> Status | None:
        """A sweep over the modes; a status if no step of any of them goes downhill."""
        if self.tracker.epoch % REFRESH == 0 or self.objective.is_stale(self.A):
            self.objective.settle(self.A)
        before = self.A
        for mode, steps in enumerate(self.modes):
            self.loss = self._step(mode, steps)
        self.tracker.epoch += 1
        if self.A is not before:
            if self.leaps is not None:
                self._leap(before, self.leaps)
            return None
        return Status(
            True,
            f"Converged: at epoch {self.tracker.epoch} no step of any mode lowers the loss by "
            "more than rounding does.",
        )

    def _leap(self, before: np.ndarray, leaps: Anderson) -> None:
        """Go where the last sweeps lead to, if that is downhill."""
        A = leaps.beyond(before, self.A)
        if A is None:
            return
        for steps in self.modes:
            rows = steps.rows
            if not steps.mirror.signed:
                # Entries at 0 would never leave it.
                A[rows] = np.maximum(A[rows], LEAST * self.A[rows])
            A[rows] = steps.constraint.apply(A[rows], mirror=steps.mirror)
        loss = self._value(A)
        if loss + self._penalty(A) < self.loss + self._penalty(self.A):
            self.A, self.loss = A, loss
        else:
            leaps.forget()

    def _penalty(self, A: np.ndarray) -> float:
        return sum(steps.constraint.penalty(A[steps.rows]) for steps in self.modes)

    def _step(self, mode: int, steps: ModeSteps) -> float:
        """Move one factor downhill if that is possible; return the loss after it."""
        self.tracker.check_time()
        loss, G = self.objective.mode_gradient(self.A, mode)
        self.tracker.entries += self.entries
        old = self.A[steps.rows]
        penalty = steps.constraint.penalty(old)
        steps.eta = steps.eta or steps.first_eta(old, G)
        while True:
            new = steps.moved(old, G)
            linear = float(np.sum(G * (new - old)))
            distance = max(float(np.sum(steps.mirror.bregman(new, old))), TINY)
            rise = steps.constraint.penalty(new) - penalty
            if not linear + distance / steps.eta + rise < -ROUNDING * abs(loss + penalty):
                return loss
            A = self.A.copy()
            A[steps.rows] = new
            reached = self._value(A)
            # How much of the allowed curvature 1 / eta was met on the way.
            share = steps.eta * (reached - loss - linear) / distance
            if share <= 1 and reached + rise <= loss:
                self.A = A
                steps.eta *= float(np.clip(MARGIN / max(share, 1e-3), 1.0, 2.0))
                return reached
            steps.eta *= float(np.clip(MARGIN / share, 0.1, 0.5)) if share > 1 else 0.5
            if steps.eta < TINY:
                steps.eta = 0.0
                return loss

    def _value(self, A: np.ndarray) -> float:
        self.tracker.check_time()
        self.tracker.entries += self.entries
        return self.objective.value(A)


def run(task: Task, leaps: bool = False) -> Result:
    """Fit by block mirror descent; superfluous components are merged first.

    With ``leaps``, sweeps are accelerated: what they end with is the same, after far fewer of them.
    """
    problem, settings = task.problem, task.settings
    tracker = Tracker.of_passes(task)
    A = tracker.best.copy()
    objective = SteadyObjective.of(problem, settings.n_threads)
    starts = offsets(problem.shape)
    rules = zip(problem.constraints, problem.phases[0].mirrors, strict=True)
    modes = [ModeSteps(slice(starts[n], starts[n + 1]), c, phi) for n, (c, phi) in enumerate(rules)]
    objective.compile(A)
    for steps in modes:
        steps.eta = 1.0
        steps.moved(A[steps.rows], np.zeros_like(A[steps.rows]))
        steps.eta = 0.0
    entries = entries_of(problem)
    ahead = Anderson() if leaps else None
    return tracker.follow(MirrorDescent(objective, tracker, modes, A, entries, ahead).solve)


md = Method("md", run, takes_sums=True)
