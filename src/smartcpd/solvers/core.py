"""Dense data, from nothing to the optimum: a core, a quasi-Newton finish, a second look.

Least squares on a compressed tensor gives a start, often one that two independent runs agree on at
once. A quasi-Newton method takes it to the optimum of the loss. Where the runs do not agree, wider
starts are fitted, reduced to the rank and compared by loss, and two of them are bred, until the
lowest loss has been found twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smartcpd.core import Core, Scales, Starts, expanded
from smartcpd.history import Status
from smartcpd.losses import Data, Domain
from smartcpd.objectives import Estimate, objective_of
from smartcpd.objectives.dense import DenseObjective
from smartcpd.problem import Problem
from smartcpd.sample import CellSample
from smartcpd.solvers.base import Observer, Result, Settings, Solver
from smartcpd.solvers.bounds import bounds, check_bounds
from smartcpd.solvers.expected_counts import serves
from smartcpd.solvers.merging import merged_by_weight
from smartcpd.solvers.mixture import Mixture
from smartcpd.solvers.mm import Passes
from smartcpd.solvers.quasi_newton import QuasiNewton, Region
from smartcpd.solvers.tracker import Tracker
from smartcpd.stack import parts, stack
from smartcpd.start import random_factors
from smartcpd.storage import Dense

FIRST_STARTS, FIRST_SWEEPS, MORE_SWEEPS = 4, 20, 180
WIDTH = 1.5
"""Components of a wide start, relative to the rank."""
WIDE_STARTS, WIDE_SWEEPS = 2, 40
WIDE_ITERATIONS, CROWDED_ITERATIONS = 20, 60
FEW_EVENTS, MANY_EVENTS = 3, 30
"""Events a parameter below which a core says nothing, and from which on agreement means a lot."""
FINISHED, COMPARED, SAME_LOSS, SWITCH = 1e-5, 2e-4, 2e-3, 1e-4
"""Changes of the loss, relative to its resolution: of a finish, of a run that is compared with
others, between runs taken for the same, and where float64 takes over."""
SETTLED_STEPS = 5
NOISE = {np.float32: 3e-8, np.float64: 1e-14}
"""The relative rounding error of a loss."""
FLOOR = 1e-2
"""Of the column's mean: the least that a reduced or bred component begins with."""


@dataclass(frozen=True)
class Candidate:
    """Where a run ended."""

    A: np.ndarray
    loss: float
    settled: bool


def _loss(candidate: Candidate) -> float:
    return candidate.loss


class CoreFit:
    """A fit of dense data with factors that are free or bounded."""

    def __init__(
        self, problem: Problem, settings: Settings, rng: np.random.Generator, observe: Observer
    ) -> None:
        assert isinstance(problem.storage, Dense)
        self.problem = problem
        self.storage = problem.storage
        self.rng = rng
        self.tracker = Tracker(problem, settings, observe)
        objective = objective_of(problem.storage, problem.loss, settings.n_threads)
        assert isinstance(objective, DenseObjective)
        self.objective = objective
        self.tau = settings.stopping.tol / 0.02
        self.settings = settings
        low, high = bounds(problem)
        self.region = Region(problem.shape, problem.loss, low, high)
        self.nonnegative = [bool(part[0, 0] >= 0) for part in parts(low, problem.shape)]
        self.freedom = problem.rank * (sum(problem.shape) - len(problem.shape) + 1)
        self.sample = CellSample(problem)

    def from_start(self, start: list[np.ndarray]) -> Result:
        """The finish alone, from factors of the user's."""
        A = stack(start)
        self._compile(A)
        self.tracker.begin_with(A[:, : self.problem.rank])

        def loop() -> Status:
            B = self._reduced(A) if A.shape[1] > self.problem.rank else A
            return self._finish(B, "from the given start")

        return self.tracker.follow(loop)

    def from_scratch(self) -> Result:
        A = stack(random_factors(self.problem, self.problem.rank, self.rng))
        self._compile(A)
        self.tracker.begin_with(A)
        return self.tracker.follow(self._search)

    def _compile(self, A: np.ndarray) -> None:
        """Have everything compiled before the clock starts."""
        some = self.objective.sampled(1, np.random.default_rng(0))
        for dtype in (np.float32, np.float64):
            some.gradient(A.astype(dtype))

    def _search(self) -> Status:
        problem = self.problem
        runs: list[Candidate] = []
        if self._linear and self._events >= FEW_EVENTS * self.freedom:
            scales = Scales.of(self.storage, problem.loss)
            self.scales = scales
            A = self._agreed_start(scales)
            if A is not None:
                found = self._descend(A, "finish", FINISHED, 60)
                if found.settled and problem.rank <= min(problem.shape):
                    return Status(
                        True,
                        "Converged: two independent starts agreed, and the loss of their finish "
                        f"settled at {found.loss:.6g}.",
                    )
                runs.append(found)
        bred: list[Candidate] = []
        fewest, most = (2, 5) if self._care == 1 else (5, 9)
        while len(runs) + len(bred) < most:
            number = len(runs) + len(bred) + 1
            if len(runs) >= 2 and len(bred) < len(runs) // 2:
                A = self._side_by_side(*(c.A for c in sorted(runs + bred, key=_loss)[:2]))
                bred.append(self._narrowed(A, f"run {number}, bred"))
            else:
                runs.append(self._narrowed(self._wide_start(), f"run {number}"))
            if number >= fewest and self._twice(runs, bred):
                break
        best = min(runs + bred, key=_loss)
        status = self._finish(best.A, "finish")
        if not status.converged:
            return status
        n = len(runs) + len(bred)
        if self._twice(runs, bred):
            return Status(True, f"{status.reason} Two of {n} runs found it independently.")
        return Status(
            True,
            f"{status.reason} Not confirmed: no two of {n} runs ended at the same loss, so a "
            "better solution may exist; compare fits with other seeds, or with n_init.",
        )

    @property
    def _care(self) -> float:
        """With more components than a mode has rows, solutions of almost the same loss abound."""
        return 1.0 if self.problem.rank <= min(self.problem.shape) else 0.1

    @property
    def _linear(self) -> bool:
        """Whether the data itself, not a transform of it, is about a sum of components."""
        loss = self.problem.loss
        return loss.domain is Domain.NONNEGATIVE or loss.data is Data.REAL

    @property
    def _events(self) -> float:
        """Counts or events in the data; infinite for measurements."""
        if self.problem.loss.data not in (Data.COUNTS, Data.BINARY):
            return math.inf
        return self.storage.mean() * self.storage.n_cells

    def _agreed_start(self, scales: Scales) -> np.ndarray | None:
        """A start that was found twice."""
        core = Core.of(self.storage, scales, self.problem.rank)
        starts = Starts.random(core.core, self.problem.rank, FIRST_STARTS, self.rng)
        starts.sweep(FIRST_SWEEPS)
        best = starts.best(2)
        for _ in range(MORE_SWEEPS // 10):
            if best.agree():
                break
            best.sweep(10)
            self.tracker.check_time()
        if not best.agree() or self._events < MANY_EVENTS * self.freedom:
            return None
        return self._expand(core, best.best(1).factors_of(0))

    def _wide_start(self) -> np.ndarray:
        width = math.ceil(WIDTH * self.problem.rank)
        if not self._linear:
            return self._inside(stack(random_factors(self.problem, width, self.rng)))
        if self._events < FEW_EVENTS * self.freedom and serves(self.problem):
            return self._multiplied(2 * self.problem.rank)
        if not hasattr(self, "wide_core"):
            self.wide_core = Core.of(self.storage, self.scales, width)
        starts = Starts.random(self.wide_core.core, width, WIDE_STARTS, self.rng)
        starts.sweep(WIDE_SWEEPS)
        return self._expand(self.wide_core, starts.best(1).factors_of(0))

    def _expand(self, core: Core, components: list[np.ndarray]) -> np.ndarray:
        """Components of a core as stacked factors whose model has the mean of the data."""
        factors = expanded(core, components, self.nonnegative, self.rng)
        if all(self.nonnegative):
            level = self.problem.loss.link(self.storage.mean())
            now = np.prod([A.mean(axis=0) for A in factors], axis=0).sum()
            factors = [A * (level / now) ** (1 / len(factors)) for A in factors]
        return self._inside(stack(factors))

    def _multiplied(self, width: int) -> np.ndarray:
        """A random start after some multiplicative passes, for data with few events."""
        passes = Passes.over(self.problem, self.settings.n_threads)
        mixture = Mixture.of(
            stack(random_factors(self.problem, width, self.rng)), self.problem.shape
        )
        for _ in range(15):
            _, mixture = passes.step(mixture)
            self._count_pass()
        return mixture.balanced()

    def _side_by_side(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Two solutions as one with twice the components, each at half its size."""
        return self._floored(np.hstack([A, B]) * 0.5 ** (1 / len(self.problem.shape)))

    def _narrowed(self, A: np.ndarray, phase: str) -> Candidate:
        """From a wide start to a candidate of the right rank."""
        n_steps = WIDE_ITERATIONS if self._care == 1 else CROWDED_ITERATIONS
        wide = self._descend(A, f"{phase}, {A.shape[1]} components", 0.0, n_steps)
        return self._descend(self._reduced(wide.A), phase, COMPARED * self._care, 300)

    def _reduced(self, A: np.ndarray) -> np.ndarray:
        return self._floored(merged_by_weight(A, self.problem, self.rng))

    def _floored(self, A: np.ndarray) -> np.ndarray:
        pieces = [
            np.maximum(F, FLOOR * F.mean(axis=0)) if bounded else F
            for F, bounded in zip(parts(A, self.problem.shape), self.nonnegative, strict=True)
        ]
        return self._inside(np.concatenate(pieces))

    def _inside(self, A: np.ndarray) -> np.ndarray:
        return np.clip(A, self.region.low, self.region.high)

    def _twice(self, runs: list[Candidate], bred: list[Candidate]) -> bool:
        """Whether two independent runs ended at the lowest loss."""
        best = min(runs + bred, key=_loss)
        margin = SAME_LOSS * self._care * self.sample.resolution(best.A) + 1e-7 * abs(best.loss)
        return sum(run.loss <= best.loss + margin for run in runs) >= 2

    def _finish(self, A: np.ndarray, phase: str) -> Status:
        found = self._descend(A, phase, FINISHED, 500)
        if found.settled:
            return Status(True, f"Converged: the loss settled at {found.loss:.6g}.")
        return Status(
            False,
            "Stopped after 500 quasi-Newton steps before the loss settled; fit again with "
            "init= this model to go on.",
        )

    def _descend(self, A: np.ndarray, phase: str, tau: float, limit: int) -> Candidate:
        """Quasi-Newton steps until a few in a row gain less than ``tau`` of the resolution."""
        precision: type = np.float32
        newton = QuasiNewton(self._function(precision), self.region, A, self.rng, NOISE[precision])
        self.tracker.note(newton.point.A, Estimate(newton.point.value), phase)
        gains = [math.inf] * SETTLED_STEPS
        resolution = 0.0
        for iteration in range(limit):
            promised, gained = newton.step()
            point = newton.point
            self.tracker.note(point.A, Estimate(point.value), phase)
            gains = [*gains[1:], abs(gained)]
            stuck = promised == gained == 0.0
            if tau == 0 and not stuck:
                continue
            if iteration % SETTLED_STEPS == 0:
                resolution = self.sample.resolution(point.A)
            noise = NOISE[precision] * abs(point.value)
            if precision is np.float32 and tau < SWITCH:
                if stuck or max(promised, gained) <= max(SWITCH * self.tau * resolution, noise):
                    precision = np.float64
                    newton.switch(self._function(precision), point.A, NOISE[precision])
            elif stuck or sum(gains) <= max(tau * self.tau * resolution, noise):
                return Candidate(point.A, point.value, True)
        return Candidate(newton.point.A, newton.point.value, False)

    def _function(self, precision: type):  # type: ignore[no-untyped-def]
        def value_and_gradient(A: np.ndarray) -> tuple[float, np.ndarray]:
            self._count_pass()
            return self.objective.gradient(A.astype(precision))

        return value_and_gradient

    def _count_pass(self) -> None:
        self.tracker.epoch += 1
        self.tracker.entries += self.objective.n_cells
        self.tracker.check_time()


def check(problem: Problem) -> None:
    check_bounds(problem, "core")


def _run(
    problem: Problem,
    settings: Settings,
    start: list[np.ndarray],
    rng: np.random.Generator,
    observe: Observer,
) -> Result:
    fit = CoreFit(problem, settings, rng, observe)
    return fit.from_start(start) if settings.given_start else fit.from_scratch()


core = Solver("core", _run, check)
