"""Sparse counts and events, from nothing to the optimum in a few passes over the nonzeros.

Online EM on batches of nonzeros finds more components than asked for; those are merged, and what is
left is polished by full passes. Where events are few, several starts compete, and are bred: two of
them side by side are a wide mixture that can keep the best of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import ClassVar

import numpy as np

from smartcpd import losses
from smartcpd._common.stacked import stack
from smartcpd._data.storage import SparseTensor
from smartcpd._methods import expected_counts
from smartcpd._methods.base import Result, Solver, Task
from smartcpd._methods.expected_counts import batch_counts
from smartcpd._methods.extrapolation import descend
from smartcpd._methods.merging import merged, merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mm import Passes
from smartcpd._methods.tracker import EndedError, Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.sparse import SparseObjective
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.starts import marginal_factors
from smartcpd.errors import IncompatibleError

EPOCHS = 2
"""Times that online EM sees every nonzero."""
BATCHES = 100
"""Parts that it sees them in, unless those had fewer events than the factors have rows."""
MIN_BATCH = 500
FORGETTING = 0.6
"""The t-th batch has weight (t + 2)^-0.6 in the running counts."""
SMOOTHING = 3.0
MIN_PASSES, MAX_PASSES = 3, 40
FEW_EVENTS = 20
"""Events a component and row of the longest mode, below which starts differ and several compete."""


Start = tuple[float, Mixture]
"""A loss, and the mixture that the next pass should begin with."""


@dataclass(frozen=True)
class Plan:
    """How many starts there are and how wide, when a wide phase has settled, and what follows."""

    n_starts: int
    width: int
    settled: float
    """The relative gain of a pass below which wide components are merged."""
    after_merge: tuple[float, ...]
    """The smoothing of each pass between a merge and the choice of the best."""

    @classmethod
    def for_problem(cls, storage: SparseTensor, rank: int, n_init: int) -> Plan:
        events = float(storage.values.sum(dtype=np.float64))
        if events > FEW_EVENTS * max(storage.shape) * rank:
            return cls(n_init, 2 * rank, 1e-3, (SMOOTHING, 0.0))
        n_starts = max(n_init, int(np.clip(round(2e6 / max(storage.nnz, 1)), 2, 8)))
        return cls(n_starts, math.ceil(1.5 * rank), 2e-4, (*[SMOOTHING] * 4, 1.0, 0.3, 0.0))


@dataclass
class _Batches:
    """Online EM in the middle of an epoch."""

    mixture: Mixture
    counts: np.ndarray
    steps: int = 0
    position: int = 0
    kept: ClassVar = ("mixture", "counts", "steps", "position")

    def step_towards(self, here: np.ndarray) -> None:
        """Remember the counts of a batch; the older they get, the less."""
        share = (self.steps + 2.0) ** -FORGETTING if self.steps else 1.0
        self.counts += share * (here - self.counts)
        self.mixture = Mixture.from_counts(self.counts, self.mixture.shape, SMOOTHING)
        self.steps += 1


@dataclass
class _Settling:
    """Full passes on the way to a merge."""

    mixture: Mixture
    values: list[float] = field(default_factory=list)
    kept: ClassVar = ("mixture", "values")

    @property
    def gain(self) -> float:
        """Of the last pass; unknown at first."""
        enough = len(self.values) >= MIN_PASSES
        return self.values[-2] - self.values[-1] if enough else math.inf


class Online:
    """A fit from scratch: starts, the best of which is finished."""

    def __init__(self, task: Task) -> None:
        problem, settings = task.problem, task.settings
        assert isinstance(problem.storage, SparseTensor)
        self.problem = problem
        self.storage = problem.storage
        self.rng = task.rng
        self.plan = Plan.for_problem(self.storage, problem.rank, settings.n_init)
        self.tracker = Tracker(problem, settings.for_full_passes(), task.observe, task.rng)
        self.objective = SparseObjective(self.storage, problem.loss, settings.n_threads)
        # Where events are rare, yes/no data is as good as counts, and counts cost less.
        self.counts = SparseObjective(self.storage, losses.get("poisson"), settings.n_threads)
        self.passes = Passes.over(problem, settings.n_threads, losses.get("poisson"))
        self.finish = Passes.over(problem, settings.n_threads)

    def solve(self, finish: bool = True) -> Result:
        """Without the finish, what the best of the starts found."""
        tracker = self.tracker
        mixture = self._random_mixture()
        for passes in (self.passes, self.finish):
            passes.compile(mixture.stacked())
        tracker.begin_with(mixture.balanced())

        def loop() -> Status:
            self._record(mixture, "start")
            best = self._best_of_starts(mixture)
            if not finish:
                self._record(best, "best start")
                return Status(True, "This is the best of the starts.")
            return descend(tracker, self.finish, best, self.storage.nnz, "mm")

        return tracker.follow(loop)

    def _best_of_starts(self, mixture: Mixture) -> Mixture:
        """Starts are bred in pairs of about the same loss, until one is left."""
        found = [
            self.tracker.stage(partial(self._start, number, mixture), self.passes)
            for number in range(1, self.plan.n_starts + 1)
        ]
        while len(found) > 1:
            found.sort(key=itemgetter(0))
            pairs = zip(found[::2], found[1::2], strict=False)
            rest = found[len(found) // 2 * 2 :]
            found = [self._bred(better, other) for better, other in pairs] + rest
        return found[0][1]

    def _bred(self, better: Start, other: Start) -> Start:
        """What two starts side by side become, or the better of them if that is better still."""
        child = partial(self._narrowed, better[1].beside(other[1]), "bred")
        return min(better, self.tracker.stage(child, self.passes), key=itemgetter(0))

    def _start(self, number: int, mixture: Mixture) -> Start:
        """A start of the right rank."""
        if number > 1:
            mixture = self._random_mixture()
        mixture = self.tracker.stage(lambda: self._online(mixture), self.passes)
        return self._narrowed(mixture, f"start {number} of {self.plan.n_starts}", number == 1)

    def _narrowed(self, mixture: Mixture, phase: str, first: bool = False) -> Start:
        """From a wide mixture to one of the right rank."""
        mixture = self.tracker.stage(lambda: self._settle(mixture), self.passes)
        found, loss, following = self._narrow(mixture)
        if first:
            self.tracker.begin_with(found.balanced())
        self._record(found, phase, loss)
        return loss.loss, following

    def _random_mixture(self) -> Mixture:
        factors = marginal_factors(self.problem, self.plan.width, self.rng)
        return Mixture.of(stack(factors), self.problem.shape)

    def _online(self, mixture: Mixture) -> Mixture:
        """Steps after every batch, towards counts that remember the batches before."""
        run = _Batches(mixture, np.zeros_like(mixture.columns))
        for _ in range(EPOCHS):
            self.tracker.stage(partial(self._online_epoch, run), run)
        return run.mixture

    def _online_epoch(self, run: _Batches) -> None:
        storage = self.storage
        batch = max(len(storage.events) // BATCHES, sum(storage.shape), MIN_BATCH)
        total = float(storage.values.sum(dtype=np.float64))
        n_events = len(storage.events)
        order = np.arange(n_events, dtype=np.min_scalar_type(n_events))
        self.rng.shuffle(order)
        run.position = 0
        seen = self.tracker.loop(run)
        while run.position < n_events:
            chosen = order[run.position : run.position + batch]
            chosen = np.sort(chosen).astype(np.int64)
            if storage.weighted:
                share = n_events / chosen.size
            else:
                share = total / float(storage.values[chosen].sum(dtype=np.float64))
            run.step_towards(batch_counts(self.counts, run.mixture, chosen, share))
            run.position += batch
            self.tracker.check_time()
            seen()
        self._count_pass()

    def _settle(self, mixture: Mixture) -> Mixture:
        """Full passes until they gain little."""
        run = _Settling(mixture)
        seen = self.tracker.loop(run, self.passes)
        while len(run.values) < MAX_PASSES:
            value, following = self._pass(run.mixture, SMOOTHING)
            if self.problem.loss.divergence == 1.0:
                self._record(run.mixture, f"{mixture.rank} components", Estimate(value))
            run.mixture = following
            run.values.append(value)
            if run.gain < self.plan.settled * abs(value):
                break
            seen()
        return run.mixture

    def _narrow(self, mixture: Mixture) -> tuple[Mixture, Estimate, Mixture]:
        """Merge to the rank in two ways, and keep the one with the lower loss after some passes.

        Returns a mixture, its loss, and the mixture that the next pass should begin with.
        """
        rank, shape = self.problem.rank, self.problem.shape
        ways = [
            merged_by_information(mixture, rank),
            Mixture.of(merged(mixture.balanced(), self.problem), shape),
        ]
        found = []
        for way in ways:
            following = way
            for smoothing in self.plan.after_merge:
                way = following
                value, following = self._pass(way, smoothing)
            found.append((value, way, following))
        value, way, following = min(found, key=lambda candidate: candidate[0])
        if self.problem.loss.divergence == 1.0:
            return way, Estimate(value), following
        return way, self._loss(way), following

    def _loss(self, mixture: Mixture) -> Estimate:
        A = mixture.stacked()
        self._count_pass()
        return self.objective.with_background(A).estimate(A)

    def _pass(self, mixture: Mixture, smoothing: float) -> tuple[float, Mixture]:
        self._count_pass()
        return self.passes.step(mixture, smoothing=smoothing)

    def _count_pass(self) -> None:
        self.tracker.entries += self.storage.nnz
        self.tracker.epoch += 1
        self.tracker.check_time()

    def _record(self, mixture: Mixture, phase: str, loss: Estimate | None = None) -> None:
        """A row of the history; only what the user set ends a fit before its finish."""
        status = self.tracker.record(mixture.balanced(), loss or self._loss(mixture), phase)
        if status is not None and not status.converged:
            raise EndedError(status)


def check(problem: Problem) -> None:
    expected_counts.check(problem)
    storage = problem.storage
    if not isinstance(storage, SparseTensor) or storage.nnz == 0 or storage.absent != "zero":
        raise IncompatibleError(
            f"Solver 'online' draws the nonzeros of sparse data with zeros; got {problem}. "
            "Use solver='auto', or pass X as a SparseTensor."
        )


def _run(task: Task) -> Result:
    """Fit sparse counts or events from scratch; the start is not used."""
    return Online(task).solve()


def _run_start(task: Task) -> Result:
    return Online(task).solve(finish=False)


online = Solver("online", _run, check, compares_starts=True)
online_start = Solver("online-start", _run_start, check, compares_starts=True)
"""For those who have a finish of their own."""
