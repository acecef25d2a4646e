"""The fit of sparse data from scratch: independent searches, each finished on all of the data.

A search for counts and other nonnegative sums breeds a population of mixtures, on a miniature where
the nonzeros are many: a sample of them, with all rows and with fewer by turns. A search for other
models begins at random, with more components than asked for. Its best model goes down to where
little is left to gain. Where two searches, which have nothing in common but the data, have found
the same components, the fit is over. Otherwise their populations are put together and bred for much
longer; models without a population are searched for again, and bred in pairs. The lowest loss is
kept. The effort says how many children and searches there may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from smartcpd._common.stacked import stack, unstack
from smartcpd._data.storage import SparseTensor
from smartcpd._data.storage.conversion import as_dense
from smartcpd._kernels.ahead import compile_ahead
from smartcpd._methods.base import Comparison, Ended, Method, Result
from smartcpd._methods.dense_descent import finish_of
from smartcpd._methods.descents import Candidate
from smartcpd._methods.expected_counts import serves
from smartcpd._methods.loop import Look, raised
from smartcpd._methods.mixture_bursts import needed_kernels
from smartcpd._methods.mm import mm
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import objective_of
from smartcpd._problem.bounds import check_bounds
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.dense import dense
from smartcpd._strategies.findings import Findings, Run
from smartcpd._strategies.miniatures import Miniature
from smartcpd._strategies.population import Member, Population
from smartcpd._strategies.sparse_paths import DescendedPath, MultipliedPath, side_by_side
from smartcpd._strategies.starts import random_factors
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Data, Domain

FEW_EVENTS = 20
"""Number of events a component and row of the longest mode, below which starts differ."""
SEARCHES = 3
"""Number of searches at the usual effort, if no two of them find the same."""
FEWEST = 2
"""Number of searches that are made at any effort above 0."""
DESCENDED = 3
"""Number of the best members of a joined population that go down: a loss after few steps, or on a
sample, does not rank them exactly."""
EVENTS_A_PARAMETER, NEEDED = 3, 3
"""With fewer events a parameter than this, poor solutions are found again by chance: more searches
must agree."""
SAME_LOSS = 0.01
"""Searches found the same if their losses differ by less than this share of the resolution: those
of populations whose components are alike, but not the same, were 0.016 of it apart."""
WIDTH = 1.5
"""Number of components of a random start, relative to the rank."""
AFFORDABLE = {True: 1 << 20, False: 1 << 23}
"""Up to so many cells a tensor is fitted as a dense array where no multiplicative updates serve it:
where the loss of its zeros has a closed form, and where it has none."""


def is_mixture(problem: Problem) -> bool:
    """Whether components of counts are a good start: all is nonnegative, and adds up."""
    nonnegative = all(c.name == "nonnegative" for c in problem.constraints)
    counts = problem.loss.data in (Data.COUNTS, Data.BINARY)
    return nonnegative and counts and problem.loss.domain is Domain.NONNEGATIVE


class SparseSearch:
    """A search for the best model of sparse data with zeros."""

    def __init__(self, search: Search) -> None:
        problem, settings = search.problem, search.settings
        self.problem, self.settings, self.rng = problem, settings, search.rng
        self.storage = problem.stored_as(SparseTensor)
        self.tracker = Tracker(problem, settings.for_full_passes(), search.observe, search.rng)
        self.path: MultipliedPath | DescendedPath = (
            MultipliedPath(problem, settings, self.tracker)
            if serves(problem)
            else DescendedPath(problem, settings, self.tracker, search.rng)
        )
        self.runs: list[Candidate] = []
        self.members: list[Member] = []
        """The mixtures that searches have bred."""
        self.on_rows: list[bool] = []
        """Whether each search was made with all rows, and none of them put together."""
        self.agreed_at_once = False
        """Whether the first starts of a search with all rows found the same."""

    def solve(self, finish: bool = True) -> Result:
        """Fit from scratch; without the finish, return what the first search found."""
        tracker, problem = self.tracker, self.problem
        A = stack(random_factors(problem, problem.rank, np.random.default_rng(0)))
        if is_mixture(problem):
            compile_ahead(*needed_kernels(problem.loss, len(problem.shape)))
        self.path.compile(A)
        tracker.begin_with(A)

        def loop() -> Status:
            if finish:
                return self._search()
            found = self._first(1)
            self._record(found, "start")
            return Status(True, "This is the best of the starts.")

        return tracker.follow(loop)

    def _search(self) -> Status:
        fewest = max(FEWEST if self.settings.effort > 0 else 1, self.settings.n_init)
        most = max(fewest, round(SEARCHES * self.settings.effort))
        for number in range(1, most + 1):
            self.runs.append(self._run(number))
            if number < fewest or self._asks_for_one_more:
                continue
            if self._is_found:
                break
            self.runs += self._bred(number)
            if self.members or self._is_found:
                break
        chosen = self._ranked[0]
        findings = self._findings(chosen)
        ended = self.path.finish(chosen.A)
        self.tracker.finding = findings.told
        self.tracker.comparison = self._compared(chosen)
        return ended.status

    @property
    def _is_found(self) -> bool:
        return self._findings(self._ranked[0]).confirmed

    @property
    def _asks_for_one_more(self) -> bool:
        """Whether all searches found the same, but so little data asks for another one."""
        found = self._findings(self._ranked[0])
        return not found.confirmed and len(found.found) == len(self.runs)

    def _run(self, number: int) -> Candidate:
        """A search that is independent of all others."""
        A = self._first(number)
        return self._descended([A], f"search {number}", (f"search {number}",))[0]

    def _bred(self, number: int) -> list[Candidate]:
        """What the searches so far become together: the best of their populations as one that goes
        on, or the best two runs side by side.
        """
        phase = f"bred after {number} searches"
        if self.members:
            found = self._from_population(phase, self.members)
            origins = tuple(name for run in self.runs for name in run.origins)
            return self._descended(found, phase, origins)
        one, two = self._ranked[:2]
        both = side_by_side(one.A, two.A, len(self.problem.shape))
        A = self.tracker.stage(partial(self.path.narrowed, both, phase), *self.path.changing)
        return self._descended([A], phase, (*one.origins, *two.origins))

    def _descended(
        self, starts: Sequence[np.ndarray], phase: str, origins: tuple[str, ...]
    ) -> list[Candidate]:
        # Users who ask for several runs want to see where each of them ends.
        alone = self.settings.n_init > 1
        rival = None if alone else next(iter(self._ranked), None)
        names = tuple(sorted(set(origins)))
        return [replace(run, origins=names) for run in self.path.compared(starts, phase, rival)]

    def _first(self, number: int) -> np.ndarray:
        """Where a search begins that knows nothing of others."""
        phase = f"search {number}"
        if is_mixture(self.problem):
            return self._from_population(phase)[0]
        width = math.ceil(WIDTH * self.problem.rank)
        wide = stack(random_factors(self.problem, width, self.rng))
        return self.tracker.stage(partial(self.path.narrowed, wide, phase), *self.path.changing)

    def _from_population(self, phase: str, members: Sequence[Member] = ()) -> list[np.ndarray]:
        """The best of a population of mixtures, the first of them first; of a new one, which joins
        those before it, or of one that some members make together.
        """
        small = self._miniature(joining=bool(members))
        population = Population(
            small.problem,
            self.tracker,
            self.rng,
            self.settings.n_threads,
            small.is_whole,
            self.settings.effort,
        )

        def bred() -> list[Member]:
            if not members:
                # What counts lead to, and what they hide: every second search does without them.
                return population.bred(as_counts=len(self.on_rows) % 2 == 1)
            return population.joined(
                [each._replace(mixture=small.reduced(each.mixture)) for each in members]
            )

        found = self.tracker.stage(bred, *self.path.changing)
        self.agreed_at_once |= population.agree_at_once(found)
        found = [each._replace(mixture=small.enlarged(each.mixture)) for each in found]
        if not members:
            self.members += found
        level = 1.0
        if not population.knows(self.problem.loss, small.is_whole):
            level = self.problem.loss.link(self.storage.mean()) / max(self.storage.mean(), 1e-300)
        scale = level ** (1 / len(self.problem.shape))
        best = [scale * each.mixture.balanced() for each in found[: DESCENDED if members else 1]]
        if not small.is_whole:
            # Rows that a miniature leaves empty must be able to grow.
            best = self.tracker.stage(partial(self.path.filled, best), *self.path.changing)
        if not self.tracker.history:
            self._record(best[0], "start")
        return best

    def _miniature(self, joining: bool) -> Miniature:
        """What a population is bred on: where starts do not agree at once, searches with all rows
        and with fewer take turns, and the way that led further is the way of what they become
        together.
        """
        if joining:
            _, all_rows = min(zip((run.loss for run in self.runs), self.on_rows, strict=True))
        else:
            all_rows = self.agreed_at_once or len(self.on_rows) % 2 == 0
            self.on_rows.append(all_rows)
        make = Miniature.sampled if all_rows else Miniature.condensed
        return make(self.problem, self.rng)

    def _record(self, A: np.ndarray, phase: str) -> None:
        objective = objective_of(self.storage, self.problem.loss, self.settings.n_threads)
        raised(self.tracker, Look(A, objective.estimate(A), phase))

    def _findings(self, chosen: Candidate) -> Findings:
        """What all runs say together about one of them."""
        runs = {
            id(run): Run(
                unstack(run.A, self.problem.shape), run.loss, run.settled, frozenset(run.origins)
            )
            for run in self._ranked
        }

        def error(one: Run, two: Run) -> float:
            return self.path.descents.sample.error(stack(one.factors), stack(two.factors))

        resolution = self.path.descents.resolution(chosen.A)
        needed = NEEDED if self._says_little else 2
        return Findings(list(runs.values()), runs[id(chosen)], resolution, error, needed, SAME_LOSS)

    @property
    def _says_little(self) -> bool:
        """Whether there are few events a parameter."""
        return self.storage.nnz < EVENTS_A_PARAMETER * self.problem.freedom

    def _compared(self, best: Candidate) -> Comparison:
        """Return the independent runs; those that were left behind have not come to their end."""
        searches = [run for run in self.runs if len(run.origins) == 1]
        others = [run for run in searches if run is not best]
        ended = [run for run in others if run.settled]
        return Comparison(
            [Ended(unstack(run.A, self.problem.shape), run.loss) for run in ended],
            own=len(others) < len(searches),
            n_stopped=len(others) - len(ended),
            settled=True,
        )

    @property
    def _ranked(self) -> list[Candidate]:
        return sorted(self.runs, key=lambda run: run.loss)


def as_dense_problem(problem: Problem) -> Problem | None:
    """The problem on a dense array; None where that has too many cells."""
    storage = problem.stored_as(SparseTensor)
    if storage.n_cells > AFFORDABLE[problem.loss.background is not None]:
        return None
    return replace(problem, storage=as_dense(storage))


def check(problem: Problem) -> None:
    """Refuse what is not sparse with zeros, or under constraints that descents do not serve."""
    check_bounds(problem, "sparse")
    storage = problem.storage
    if storage.absent != "zero" or storage.n_stored == 0:
        raise IncompatibleError(
            f"Solver 'sparse' takes the nonzeros of sparse data with zeros; got {problem}. "
            "Use solver='auto', or pass X as a SparseTensor."
        )


def _run(search: Search) -> Result:
    if not serves(search.problem):
        whole = as_dense_problem(search.problem)
        if whole is not None:
            return dense.run(replace(search, problem=whole))
    return SparseSearch(search).solve()


def _run_start(search: Search) -> Result:
    return SparseSearch(search).solve(finish=False)


def _finish(problem: Problem) -> Method:
    return mm if serves(problem) else finish_of(problem)


sparse = Strategy("sparse", _run, _finish, check, compares_starts=True)
sparse_start = Strategy("sparse-start", _run_start, _finish, check, compares_starts=True)
"""The starts alone, for those who have a finish of their own."""
