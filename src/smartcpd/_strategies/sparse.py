"""The fit of sparse counts and events from scratch, in a few passes over the nonzeros.

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
from smartcpd._methods.base import Method, Result
from smartcpd._methods.expected_counts import batch_counts
from smartcpd._methods.extrapolation import descend
from smartcpd._methods.loop import Look, Loop, raised
from smartcpd._methods.merging import merged, merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mm import Passes, mm
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.sparse import SparseObjective
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.starts import marginal_factors
from smartcpd.errors import IncompatibleError

EPOCHS = 2
"""How often online EM sees every nonzero."""
BATCHES = 100
"""Number of batches that online EM sees the nonzeros in, unless those had fewer events than the
factors have rows.
"""
MIN_BATCH = 500
FORGETTING = 0.6
"""The t-th batch has weight (t + 2)^-0.6 in the running counts."""
SMOOTHING = 3.0
MIN_PASSES, MAX_PASSES = 3, 40
FEW_EVENTS = 20
"""Number of events a component and row of the longest mode, below which starts differ and several
compete.
"""


Start = tuple[float, Mixture]
"""A loss, and the mixture that the next pass should begin with."""


@dataclass(frozen=True)
class StartPlan:
    """How many starts there are and how wide, when a wide phase has settled, and what follows."""

    n_starts: int
    width: int
    settled: float
    """The relative gain of a pass below which wide components are merged."""
    after_merge: tuple[float, ...]
    """The smoothing of each pass between a merge and the choice of the best."""

    @classmethod
    def for_problem(cls, storage: SparseTensor, rank: int, n_init: int) -> StartPlan:
        events = float(storage.values.sum(dtype=np.float64))
        if events > FEW_EVENTS * max(storage.shape) * rank:
            return cls(n_init, 2 * rank, 1e-3, (SMOOTHING, 0.0))
        n_starts = max(n_init, int(np.clip(round(2e6 / max(storage.nnz, 1)), 2, 8)))
        return cls(n_starts, math.ceil(1.5 * rank), 2e-4, (*[SMOOTHING] * 4, 1.0, 0.3, 0.0))


@dataclass
class _Batches:
    """The state of online EM in the middle of an epoch."""

    search: SparseSearch
    mixture: Mixture
    counts: np.ndarray
    steps: int = 0
    position: int = 0
    kept: ClassVar = ("mixture", "counts", "steps", "position")

    def begin(self) -> None:
        """Begin an epoch: all events, in an order of its own."""
        n_events = len(self.search.storage.events)
        self.order = np.arange(n_events, dtype=np.min_scalar_type(n_events))
        self.search.rng.shuffle(self.order)
        self.position = 0

    def look(self) -> None:
        """A step after a batch, towards counts that remember the batches before."""
        storage, n_events = self.search.storage, self.order.size
        batch = max(n_events // BATCHES, sum(storage.shape), MIN_BATCH)
        chosen = np.sort(self.order[self.position : self.position + batch]).astype(np.int64)
        if storage.weighted:
            share = n_events / chosen.size
        else:
            total = float(storage.values.sum(dtype=np.float64))
            share = total / float(storage.values[chosen].sum(dtype=np.float64))
        self._step_towards(batch_counts(self.search.counts, self.mixture, chosen, share))
        self.position += batch

    def move(self) -> bool | None:
        """End after the last batch."""
        self.search.tracker.check_time()
        return self.position >= self.order.size or None

    def _step_towards(self, here: np.ndarray) -> None:
        """Remember the counts of a batch; the older they get, the less."""
        share = (self.steps + 2.0) ** -FORGETTING if self.steps else 1.0
        self.counts += share * (here - self.counts)
        self.mixture = Mixture.from_counts(self.counts, self.mixture.shape, SMOOTHING)
        self.steps += 1


@dataclass
class _Settling:
    """The state of full passes on the way to a merge."""

    search: SparseSearch
    mixture: Mixture
    values: list[float] = field(default_factory=list)
    kept: ClassVar = ("mixture", "values")

    def look(self) -> Look | None:
        """A pass; it shows the loss where passes are made with the loss of the problem."""
        before = self.mixture
        value, self.mixture = self.search.pass_over(before, SMOOTHING)
        self.values.append(value)
        if not self.search.passes_tell_the_loss:
            return None
        return Look(before.balanced(), Estimate(value), f"{before.rank} components")

    def move(self) -> Mixture | None:
        """The mixture, once passes gain little or there were many."""
        settled = self._gain < self.search.plan.settled * abs(self.values[-1])
        return self.mixture if settled or len(self.values) >= MAX_PASSES else None

    @property
    def _gain(self) -> float:
        """What the last pass gained; unknown at first."""
        enough = len(self.values) >= MIN_PASSES
        return self.values[-2] - self.values[-1] if enough else math.inf


class SparseSearch:
    """A fit from scratch: starts, the best of which is finished."""

    def __init__(self, search: Search) -> None:
        problem, settings = search.problem, search.settings
        self.problem = problem
        self.storage = problem.stored_as(SparseTensor)
        self.rng = search.rng
        self.plan = StartPlan.for_problem(self.storage, problem.rank, settings.n_init)
        self.tracker = Tracker(problem, settings.for_full_passes(), search.observe, search.rng)
        self.objective = SparseObjective(self.storage, problem.loss, settings.n_threads)
        # Where events are rare, yes/no data is as good as counts, and counts cost less.
        self.counts = SparseObjective(self.storage, losses.get("poisson"), settings.n_threads)
        self.passes = Passes.over(problem, settings.n_threads, losses.get("poisson"))
        self.finish = Passes.over(problem, settings.n_threads)

    def solve(self, finish: bool = True) -> Result:
        """Fit from scratch; without the finish, return what the best of the starts found."""
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
        """Breed starts in pairs of about the same loss, until one is left."""
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
        """Return what two starts side by side become, or the better of them if that is better
        still.
        """
        child = partial(self._narrowed, better[1].beside(other[1]), "bred")
        return min(better, self.tracker.stage(child, self.passes), key=itemgetter(0))

    def _start(self, number: int, mixture: Mixture) -> Start:
        """Make a start of the right rank."""
        if number > 1:
            mixture = self._random_mixture()
        mixture = self.tracker.stage(lambda: self._online(mixture), self.passes)
        return self._narrowed(mixture, f"start {number} of {self.plan.n_starts}", number == 1)

    def _narrowed(self, mixture: Mixture, phase: str, first: bool = False) -> Start:
        """Turn a wide mixture into one of the right rank."""
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
        run = _Batches(self, mixture, np.zeros_like(mixture.columns))
        for _ in range(EPOCHS):
            self.tracker.stage(partial(self._online_epoch, run), run)
        return run.mixture

    def _online_epoch(self, run: _Batches) -> None:
        run.begin()
        Loop(self.tracker, run).run()
        self._count_pass()

    def _settle(self, mixture: Mixture) -> Mixture:
        """Full passes until they gain little."""
        return Loop(self.tracker, _Settling(self, mixture), self.passes, record=raised).run()

    def _narrow(self, mixture: Mixture) -> tuple[Mixture, Estimate, Mixture]:
        """Merge to the rank in two ways, and keep the one with the lower loss after some passes.

        The result is a mixture, its loss, and the mixture that the next pass should begin with.
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
                value, following = self.pass_over(way, smoothing)
            found.append((value, way, following))
        value, way, following = min(found, key=lambda candidate: candidate[0])
        if self.passes_tell_the_loss:
            return way, Estimate(value), following
        return way, self._loss(way), following

    def _loss(self, mixture: Mixture) -> Estimate:
        A = mixture.stacked()
        self._count_pass()
        return self.objective.with_background(A).estimate(A)

    @property
    def passes_tell_the_loss(self) -> bool:
        """Whether passes of the starts are made with the loss of the problem."""
        return self.problem.loss.divergence == 1.0

    def pass_over(self, mixture: Mixture, smoothing: float) -> tuple[float, Mixture]:
        """The loss of a mixture, and the mixture after a pass over the nonzeros."""
        self._count_pass()
        return self.passes.step(mixture, smoothing=smoothing)

    def _count_pass(self) -> None:
        self.tracker.entries += self.storage.nnz
        self.tracker.epoch += 1
        self.tracker.check_time()

    def _record(self, mixture: Mixture, phase: str, loss: Estimate | None = None) -> None:
        """A row of the history; only what the user set ends a fit before its finish."""
        raised(self.tracker, Look(mixture.balanced(), loss or self._loss(mixture), phase))


def check(problem: Problem) -> None:
    """Refuse what is not sparse, or what no multiplicative update serves."""
    expected_counts.check(problem)
    storage = problem.storage
    if storage.absent != "zero" or storage.n_stored == 0:
        raise IncompatibleError(
            f"Solver 'sparse' draws the nonzeros of sparse data with zeros; got {problem}. "
            "Use solver='auto', or pass X as a SparseTensor."
        )


def _run(search: Search) -> Result:
    return SparseSearch(search).solve()


def _run_start(search: Search) -> Result:
    return SparseSearch(search).solve(finish=False)


def _finish(problem: Problem) -> Method:
    return mm


sparse = Strategy("sparse", _run, _finish, check, compares_starts=True)
sparse_start = Strategy("sparse-start", _run_start, _finish, check, compares_starts=True)
"""The starts alone, for those who have a finish of their own."""
