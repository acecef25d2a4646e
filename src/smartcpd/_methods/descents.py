"""Quasi-Newton descents that a tracker follows: quick ones in float32, exact ones in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import parts
from smartcpd._kernels.coupled_solve import compiled_coupled_solve
from smartcpd._methods.base import Settings
from smartcpd._methods.loop import Look, Loop, noted
from smartcpd._methods.merging import merged
from smartcpd._methods.quasi_newton import Function, QuasiNewton, Region
from smartcpd._methods.row_hessians import row_bends
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate, objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._objectives.dense import DenseObjective
from smartcpd._problem.bounds import bounds
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem

FINISHED = 2e-4
"""The share of the loss's resolution that the last steps of a finish may still gain."""
SWITCH = 1e-3
"""The share that a single step may gain where float64 takes over if it must."""
NARROW = 1e-4
"""The share for a finish that may be in float32, too, if values in it tell such a gain."""
NEAR = 0.01
"""The share that a single step gains from which on guesses of the whole Hessian are better than
those of its blocks.
"""
SETTLED_STEPS = 5
MOST_STEPS, LAST_STEPS = 500, 1500
"""The most steps of a run, and of the last run of a fit."""
LAST_OF_ROWS, FEW_CELLS = 3000, 1 << 17
"""The most steps of a last run that knows the Hessians of rows, and the cells up to which they cost
next to nothing."""
PACE, FALLING = 10, 0.2
"""Number of steps in which gains fall to this share where a descent is done soon, and not slow."""
AHEAD = 10.0
"""What as many further steps as a run may have may gain, relative to what the last few may."""
PACE_OF_ROWS, AHEAD_OF_ROWS = 100, 40.0
"""The same number of steps, and the same gain, for descents that know the Hessians of rows; of as
many steps as the last of them may have."""
MOST_HALVINGS = 20
JOINED = 0.04
"""A run that has the components of its rival ends when what its loss is higher by is this share of
the resolution."""
MILESTONE = 20
PATIENCE = 10
"""A run has lost if, at its present pace, it would take more than so many times the steps between
two milestones to come as low as its rival.
"""
IN_REACH = 0.3
"""A run that is no further behind than this, relative to the resolution, has not lost."""
PRECISIONS = ("float32", "float64")
DEFAULT_TOL = 0.02
FLOOR = 1e-2
"""The least that an entry of a merged or bred component begins with, as a share of its column's
mean.
"""


@kept_value
@dataclass(frozen=True)
class Candidate:
    """The end of a descent, and whether it had settled there."""

    A: np.ndarray
    loss: float
    settled: bool
    stuck: bool = False
    """Whether it ended because no step led downhill any more."""
    origins: tuple[str, ...] = ()
    """Names of what it came from, where that is known; see `Run.origins` of findings."""
    steps: int = LAST_STEPS
    """The steps that it was given, if it had not settled."""

    @property
    def status(self) -> Status:
        """The status of a fit that ends here."""
        if self.settled:
            return Status(True, f"Converged: the loss settled at {self.loss:.6g}.")
        return Status(
            False,
            f"Stopped after {self.steps} quasi-Newton steps before the loss settled; fit again "
            "with init= this model to go on.",
        )


class Descents:
    """Quasi-Newton descents on one objective: all cells of a dense tensor, or a sample of them.

    `SparseDescents` does the same for sparse tensors.
    """

    precisions: ClassVar[tuple[str, ...]] = PRECISIONS
    """The precisions of passes, in the order in which they are used."""

    def __init__(
        self, problem: Problem, settings: Settings, tracker: Tracker, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.tracker = tracker
        self.n_threads = settings.n_threads
        self.rng = rng
        self.set_up()
        storage = problem.storage
        row_weights = storage.row_weights if storage.weighted else None
        self.region = Region(
            problem.shape,
            problem.loss,
            *bounds(problem),
            row_weights,
            problem.shared,
            row_bends(problem, self.n_threads, self.count_pass),
        )
        self.sample = CellSample(problem)
        # Users ask for more or less care by tol.
        self._care = settings.stopping.tol / DEFAULT_TOL

    def set_up(self) -> None:
        """Prepare the function that descents minimise."""
        objective = objective_of(self.problem.storage, self.problem.loss, self.n_threads)
        assert isinstance(objective, DenseObjective)
        self.objective = objective

    @property
    def changing(self) -> tuple[Any, ...]:
        """Further objects that descents change, for checkpoints."""
        return ()

    def settle(self, newton: QuasiNewton) -> None:
        """Bring a function up to date that is an approximation around a point; this one is
        exact.
        """

    def compile(self, A: np.ndarray) -> None:
        """Have everything compiled before a clock starts."""
        some = self.objective.sampled(1, np.random.default_rng(0))
        for dtype in PRECISIONS:
            some.gradient(A.astype(dtype))
        compiled_coupled_solve()
        self.sample.resolution(A)

    def inside(self, A: np.ndarray) -> np.ndarray:
        return np.clip(A, self.region.low, self.region.high)

    def reduced(self, A: np.ndarray) -> np.ndarray:
        """A wide model with its components merged to the rank."""
        return self.floored(merged(A, self.problem))

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
        """Return how far noise alone moves the minimal loss over the cells of the objective."""
        share = self.objective.storage.n_cells / self.objective.n_cells
        return share * self.sample.resolution(A)

    def run(
        self,
        A: np.ndarray,
        phase: str,
        tau: float = FINISHED,
        most: int | None = None,
        rival: Candidate | None = None,
        joins: bool = False,
        rough: bool = False,
        last: bool = False,
    ) -> Candidate:
        """Make steps until a few in a row gain less than ``tau`` of the resolution, or ``most`` of
        them; or until a loss as low as the ``rival``'s seems out of reach. A run that ``joins``
        ends when it has the rival's components and about its loss. A ``rough`` run makes all its
        steps, in float32. The ``last`` run of a fit goes on while it is slow and not done.
        """
        steps = most or (self._last_steps if last else MOST_STEPS)
        descent = _Descent(self, A, phase, tau * self._care, rival, joins, rough, last)
        return self.tracker.stage(lambda: descent.run(steps), *self.changing)

    @property
    def _last_steps(self) -> int:
        few = self.problem.storage.n_cells <= FEW_CELLS
        return LAST_OF_ROWS if few and self.region.row_bends is not None else LAST_STEPS

    def count_pass(self) -> None:
        self.tracker.entries += self.objective.n_cells
        self.tracker.check_time()

    def noise(self, precision: str) -> float:
        """The relative rounding error of a loss; errors of many cells average out."""
        if precision == "float64":
            return 1e-14
        return float(np.clip(3e-6 / math.sqrt(self.objective.n_cells), 1e-9, 3e-8))

    def function(self, precision: str) -> Function:
        def value_and_gradient(A: np.ndarray) -> tuple[float, np.ndarray]:
            self.count_pass()
            return self.objective.gradient(A.astype(precision))

        return value_and_gradient


class _Descent:
    """A single descent: steps in float32, then in float64, and when to end them."""

    kept = ("newton", "precision", "gains", "losses", "resolution", "milestone", "iteration")

    def __init__(
        self,
        descents: Descents,
        A: np.ndarray,
        phase: str,
        tau: float,
        rival: Candidate | None,
        joins: bool,
        rough: bool,
        last: bool,
    ) -> None:
        self.descents = descents
        self.tracker = descents.tracker
        self.start = A
        self.phase = phase
        self.tau = tau
        self.rival = rival
        self.joins = joins
        self.rough = rough
        self.last = last
        self.first_epoch = self.tracker.epoch
        self.precision = descents.precisions[0]
        self.gains = [math.inf] * SETTLED_STEPS
        self.losses: list[float] = []
        """The losses of the last steps in the present precision, for as many as tell the pace."""
        self.resolution, self.milestone = 0.0, math.inf
        self.iteration = 0

    def run(self, most: int) -> Candidate:
        self.newton = QuasiNewton(
            self.descents.function(self.precision),
            self.descents.region,
            self.start,
            self.descents.rng,
            self.descents.noise(self.precision),
        )
        if math.isfinite(self.tracker.best_objective):
            self._come_in_range()
        noted(self.tracker, self._row())
        self.most = most
        return Loop(self.tracker, self, *self.descents.changing, record=noted).run()

    def _come_in_range(self) -> None:
        """Make a start smaller whose loss is infinite, as components of several runs that stand
        side by side or are merged may be; there are others, so that the fit need not end here.
        """
        newton = self.newton
        for _ in range(MOST_HALVINGS):
            if math.isfinite(newton.point.value):
                return
            newton.switch(newton.function, 0.5 * newton.point.A, newton.noise)

    def look(self) -> Look:
        self.descents.settle(self.newton)
        self._promised, self._gained = self.newton.step()
        self.tracker.epoch += 1
        return self._row()

    def move(self) -> Candidate | None:
        """Return the point at which the descent ended, or None while it goes on."""
        settled = self._judged(self._promised, self._gained)
        if settled is not None:
            stuck = self._promised == self._gained == 0.0
            return Candidate(self.newton.point.A, self.newton.point.value, settled, stuck)
        if self.rival is not None and self._has_joined(self.rival):
            return Candidate(self.newton.point.A, self.newton.point.value, self.rival.settled)
        self.iteration += 1
        if self.iteration < self.most:
            return None
        return Candidate(self.newton.point.A, self.newton.point.value, False, steps=self.most)

    def put_back(self, values: dict[str, Any]) -> None:
        """Restore the state of another process."""
        for name, value in values.items():
            setattr(self, name, value)
        self.newton.function = self.descents.function(self.precision)
        self.newton.noise = self.descents.noise(self.precision)

    def _judged(self, promised: float, gained: float) -> bool | None:
        """Whether the descent ends here, and if so whether it has settled."""
        newton, resolution = self.newton, self.resolution
        noise = newton.noise * abs(newton.point.value)
        # Where values do not tell what was gained, gradients still do.
        self.gains = [*self.gains[1:], abs(gained) if abs(gained) > noise else promised]
        many = PACE_OF_ROWS if newton.knows_rows else 2 * PACE
        self.losses = [*self.losses[-many:], newton.point.value]
        stuck = promised == gained == 0.0
        if self.rough and not stuck:
            return None
        if self.iteration % SETTLED_STEPS == 0:
            # Where cells do not bend the loss, as far outliers do not, noise seems to be endless.
            here = self.descents.resolution(newton.point.A)
            resolution = self.resolution = min(self.resolution or here, here)
        if not newton.is_near and self.gains[-1] <= NEAR * resolution:
            newton.come_near()
            if self.descents.region.row_bends is not None:
                # What was stuck, or crept, by the other guess says nothing about this one.
                stuck, self.gains = False, [math.inf] * SETTLED_STEPS
        if newton.knows_rows and resolution > 0 and math.isfinite(sum(self.gains)):
            newton.left = sum(self.gains) / (SETTLED_STEPS * NEAR * resolution)
        suffices = self.tau >= NARROW and self.tau * resolution >= noise and not stuck
        if self.precision == "float32" and self.tau < SWITCH and not (self.rough or suffices):
            if stuck or max(promised, gained) <= max(SWITCH * resolution, noise):
                self._switch()
        elif stuck or self._gains_little(noise):
            return True
        if self.iteration % MILESTONE == 0:
            value = newton.point.value
            rival = math.inf if self.rival is None else self.rival.loss
            gap = value - rival
            if gap > max(PATIENCE * (self.milestone - value), IN_REACH * resolution):
                return False
            self.milestone = value
        return None

    def _gains_little(self, noise: float) -> bool:
        """Whether the last steps gained little, and those of a last run lead to little more."""
        least = self.tau * self.resolution
        if sum(self.gains) > max(least, noise):
            return False
        if not self.last:
            return True
        ahead = AHEAD_OF_ROWS if self.newton.knows_rows else AHEAD
        return self._ahead <= max(ahead * least, noise)

    @property
    def _ahead(self) -> float:
        """About what further steps will gain: where gains fall fast, no more than the last of them;
        elsewhere they go on at their pace, or faster, for as long as a run may.
        """
        if self.newton.knows_rows:
            # Their gains rise and fall, as guesses age and are made anew.
            whole = len(self.losses) > PACE_OF_ROWS
            fallen = self.losses[0] - self.losses[-1]
            return fallen * LAST_OF_ROWS / PACE_OF_ROWS if whole else math.inf
        steps = (len(self.losses) - 1) // 2
        if steps < 1:
            return math.inf
        earlier, middle, now = (self.losses[-1 - k * steps] for k in (2, 1, 0))
        before, lately = earlier - middle, max(middle - now, 0.0)
        return lately if lately <= FALLING * before else lately * MOST_STEPS / steps

    def _has_joined(self, rival: Candidate) -> bool:
        """Whether all components are the rival's: in any other valley one of them is altogether
        different."""
        if not self.joins or self.iteration % SETTLED_STEPS:
            return False
        A, shape = self.newton.point.A, self.descents.region.shape
        if self.newton.point.value - rival.loss > JOINED * self.resolution:
            return False
        return same_components(parts(A, shape), parts(rival.A, shape))

    def _switch(self) -> None:
        """Go on in float64."""
        self.precision, newton = "float64", self.newton
        self.losses = []
        newton.switch(
            self.descents.function(self.precision),
            newton.point.A,
            self.descents.noise(self.precision),
        )
        # Losses of the two precisions do not compare to the last digits.
        if self.tracker.best_epoch >= self.first_epoch:
            self.tracker.begin_with(newton.point.A)

    def _row(self) -> Look:
        point = self.newton.point
        return Look(point.A, Estimate(point.value), self.phase)
