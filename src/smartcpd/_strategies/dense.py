"""The fit of dense data from scratch: a core, a quasi-Newton finish, and a search where needed.

Least squares on a compressed tensor gives a start, often one that two runs there agree on at once.
A quasi-Newton method takes it to the optimum of the loss. Where that leaves more than noise, runs
follow that share nothing with it: winners of races between random starts in the problem's own loss.
The search ends when the lowest loss has been found again, with the same components, or the
effort is spent. Where there are more components than a mode has rows, losses often do not tell
solutions apart; then the most probable one is kept.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import itemgetter

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import stack, unstack
from smartcpd._kernels.ahead import compile_ahead
from smartcpd._methods.base import Comparison, Ended, Observer, Result, Settings
from smartcpd._methods.dense_descent import check_dense, finish_of, finished, is_crowded
from smartcpd._methods.descents import Candidate, Descents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.history import Finding, Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.dense_starts import DenseStarts
from smartcpd._strategies.evidence import log_evidence
from smartcpd._strategies.findings import SAME_LOSS, Findings, Run
from smartcpd._strategies.heats import Heats
from smartcpd._strategies.starts import random_factors
from smartcpd.losses import Dispersion

NEEDED_LATER = (
    "bounded_rows.bounded_rows",
    "row_terms.row_terms",
    "core_sweeps.core_sweeps:float64",
    "coupled_solve.coupled_solve",
)
"""Kernels that a search asks for after those that it begins with, the last one first."""
AGREED_STEPS, ALIKE = 60, 0.7
"""A start that was found twice is trusted if its finish takes no more steps than this, and leaves
its components alike, by the product of their cosines."""
WIDE_STEPS, CROWDED_WIDE_STEPS = 20, 60
RUNS, CROWDED_RUNS = (2, 9), (5, 12)
"""The least and the largest number of runs; the second pair where there are more components than a
mode has rows.
"""
MOST_RUNS_OF_MATRICES = 3
"""The largest number of runs on a large matrix whose factors are free: they lead to about the same
product, and other factors have it too, so that components are never found again."""
FEW_CELLS, RUNS_OF_FEW_CELLS = 1 << 17, 4
"""Up to so many cells a run costs next to nothing, and this is the least number of them: two that
agree may have met in the same poor place.
"""
STARTS, MOST_STARTS = 3, 9
"""The number of starts that join the competition for each further run, and the most of them."""
OFTEN, CROWDED_FOUND = 1 / 3, 3
"""The share of runs that must have found the best one, and their number where a model is crowded.
"""
CELLS_A_PARAMETER, NEEDED, NEEDED_OFTEN = 20, 3, 1 / 2
"""With fewer observed cells a parameter than this, poor solutions are found again by chance: more
runs must agree, and a larger share of them. Where runs end apart, as many must agree before a
search is over."""
NOTHING_LEFT = 1.1
"""The dispersion up to which a fit says that another solution could find little more."""
DISPERSED = 1.5
"""The dispersion up to which a loss that knows how widely data scatters explains all of it."""
COMPARED = 5e-4
"""The gain that a run may leave before it is compared, relative to the loss's resolution."""
COMPRESSED = "a compressed tensor"
"""The common origin of runs whose starts are least squares on a core."""
AS_LOW, DECISIVE = 0.5, math.log(100.0)
"""A solution may be kept though its loss is not the lowest: the most standard errors between the
two, and the least gain in the logarithm of its probability (Jeffreys calls that decisive).
"""
CROWDED_CARE = 0.1
"""The share of the usual tolerance by which runs are compared where a model is crowded."""


class DenseSearch:
    """A search for the best model of dense data with factors that are free or bounded."""

    def __init__(
        self, problem: Problem, settings: Settings, rng: np.random.Generator, observe: Observer
    ) -> None:
        self.problem = problem
        self.rng = rng
        self.tracker = Tracker(problem, settings, observe, rng)
        self.descents = Descents(problem, settings, self.tracker, rng)
        self.starts = DenseStarts(problem, self.descents, rng)
        self.heats = Heats(problem, self.descents, rng)
        self.crowded = is_crowded(problem)
        self.n_init = settings.n_init
        self.effort = settings.effort
        self.runs: list[Candidate] = []
        self.bred: list[Candidate] = []

    def from_scratch(self) -> Result:
        A = stack(random_factors(self.problem, self.problem.rank, self.rng))
        compile_ahead(*NEEDED_LATER)
        self.descents.compile(A)
        self.starts.compile()
        self.tracker.begin_with(self.descents.inside(A))
        return self.tracker.follow(self._search)

    def _search(self) -> Status:
        A = self.tracker.stage(self.starts.agreed)
        if A is not None:
            left = finished(self.problem)
            found = self.descents.run(A, "finish", left, AGREED_STEPS, last=True)
            if found.settled and self._alike(A, found.A) and self._explains_all(found):
                self.tracker.finding = self._of_noise(found)
                return found.status
            found = self.descents.run(found.A, "run 1", COMPARED * self._care)
            self.runs.append(replace(found, origins=(COMPRESSED,)))
        fewest, usual = CROWDED_RUNS if self.crowded else RUNS
        if self.problem.storage.n_cells <= FEW_CELLS:
            fewest = max(fewest, RUNS_OF_FEW_CELLS)
        elif self._is_free_matrix:
            usual = MOST_RUNS_OF_MATRICES
        most = max(1, self.n_init, math.ceil(self.effort * usual))
        for number in range(len(self.runs) + 1, most + 1):
            self._run(number)
            if number >= max(fewest, self.n_init) and self._is_decided:
                break
        chosen = self._chosen()
        if chosen is not self._ranked()[0]:
            self.tracker.begin_with(chosen.A)
        findings = self._findings(chosen)
        status = self.descents.run(chosen.A, "finish", finished(self.problem), last=True).status
        self.tracker.finding = findings.told
        self.tracker.comparison = self._compared(chosen)
        return status

    @property
    def _is_free_matrix(self) -> bool:
        """Whether factors can be exchanged for others of the same product."""
        long = [n for n in self.problem.shape if n > 1]
        return len(long) <= 2 and bool(np.isneginf(self.descents.region.low).all())

    def _explains_all(self, found: Candidate) -> bool:
        """Whether what a run leaves is noise, as far as the loss can tell, so that there is nothing
        better to be searched for."""
        if self.crowded or self.n_init > 1:
            return False
        open_ended = self.problem.loss.dispersion in (Dispersion.OPEN, Dispersion.UNKNOWN)
        return open_ended or self._leaves_noise(found)

    def _of_noise(self, found: Candidate) -> Finding | None:
        """A sentence about a run that nothing was compared with, where little more is left than the
        loss says that noise is; None elsewhere."""
        if self.problem.loss.dispersion in (Dispersion.OPEN, Dispersion.UNKNOWN):
            return None
        scatter = self.descents.sample.dispersion(found.A)
        if not scatter < NOTHING_LEFT:
            return None
        return Finding(
            f"What it leaves scatters {scatter:.2f} times as widely as the loss says noise does: "
            "little is left that another solution could find.",
            0,
        )

    def _leaves_noise(self, found: Candidate) -> bool:
        """Whether data scatters around a solution as widely as the loss says."""
        return self.descents.sample.dispersion(found.A) < DISPERSED

    @property
    def _is_decided(self) -> bool:
        """Whether the best run so far was found again, and often enough that there are not many
        other solutions. Components of crowded models vary at the same loss; there, it is losses
        that are compared, and nothing is decided while other components fit as well."""
        best = self._ranked()[0]
        if self.crowded:
            margin = SAME_LOSS * self.descents.resolution(best.A)
            n_found = sum(run.loss - best.loss <= margin for run in self.runs)
            often = n_found >= max(CROWDED_FOUND, OFTEN * len(self.runs))
            return often and not self._findings(best).rivals
        findings = self._findings(best)
        share = NEEDED_OFTEN if self._says_little else OFTEN
        n_found, n_runs = len(findings.found), len(self.runs)
        often = n_found >= max(NEEDED, share * n_runs)
        return findings.confirmed and (often or n_found == n_runs)

    @property
    def _says_little(self) -> bool:
        """Whether there are few observed cells a parameter."""
        return self.problem.storage.n_observed < CELLS_A_PARAMETER * self.problem.freedom

    def _run(self, number: int) -> None:
        """Make another run: from the best two so far now and then, where races do not serve; or
        from a start of its own."""
        phase = f"run {number}"
        compressed = self.starts.core_tells and not self.runs
        races = not (compressed or self.starts.is_thin)
        if self.crowded:
            compressed = self.starts.core_tells and len(self.runs) % 2 == 0
            races = races and not compressed
        if not races and len(self.runs) >= 2 and len(self.bred) < len(self.runs) // 2:
            one, two = self._ranked()[:2]
            # The two are put side by side, each at half its size.
            both = np.hstack([one.A, two.A]) * 0.5 ** (1 / len(self.problem.shape))
            child = self._narrowed(self.descents.floored(both), f"{phase}, bred")
            self.bred.append(replace(child, origins=(*one.origins, *two.origins)))
            return
        # Where a first run leaves noise alone, most starts lead to it; races are for the rest.
        plain = races and len(self.runs) == 1 and self._leaves_noise(self.runs[0])
        if races and not plain:
            A = self.tracker.stage(lambda: self.heats.winner(self._n_starts, phase))
            found = self._descended(A, phase)
        else:
            own = self.starts.plain if plain else self.starts.own
            start = self.starts.wide if compressed else own
            found = self._narrowed(self.tracker.stage(start), phase)
        origin = COMPRESSED if compressed else f"start {number}"
        self.runs.append(replace(found, origins=(origin,)))

    @property
    def _n_starts(self) -> int:
        """Return how many starts compete for the next run: more, the longer nothing is decided."""
        if self.crowded:
            return 1
        return min(max(1, STARTS * (len(self.runs) - 1)), MOST_STARTS)

    def _narrowed(self, A: np.ndarray, phase: str) -> Candidate:
        """Descend from a wide start to a candidate of the right rank."""
        steps = CROWDED_WIDE_STEPS if self.crowded else WIDE_STEPS
        wide = self.descents.run(A, f"{phase}, {A.shape[1]} components", most=steps, rough=True)
        return self._descended(self.descents.reduced(wide.A), phase)

    def _descended(self, A: np.ndarray, phase: str) -> Candidate:
        """Descend to an end, unless the best run so far seems out of reach."""
        return self.descents.run(
            A,
            phase,
            COMPARED * self._care,
            rival=next(iter(self._ranked()), None),
            # Users who ask for several runs want to see where each of them ends.
            joins=self.n_init == 1,
        )

    def _chosen(self) -> Candidate:
        """The run that ended lowest; or, where a model is crowded and the data does not tell some
        apart, one that is more probable by far."""
        tied = self._tied(AS_LOW)
        dispersion = self.descents.sample.dispersion(tied[0].A)
        if not self.crowded or len(tied) == 1 or dispersion == 0:
            return tied[0]

        def evidence(run: Candidate) -> float:
            region, n_threads = self.descents.region, self.descents.n_threads
            return log_evidence(self.problem.storage, run.A, region, dispersion, n_threads)

        chosen = self._ended(tied[0])
        most = evidence(chosen) + DECISIVE
        weighed = sorted(((evidence(run), run) for run in tied[1:]), key=itemgetter(0))
        # Only where nothing is left to gain is it known how probable a solution is.
        while weighed and weighed[-1][0] > most:
            ended = self._ended(weighed.pop()[1])
            found = evidence(ended)
            if found > most:
                most, chosen = found, ended
        return chosen

    def _ended(self, run: Candidate) -> Candidate:
        """A run after a finish, in its place."""
        ended = self.descents.run(run.A, "weighed", finished(self.problem))
        for runs in (self.runs, self.bred):
            runs[:] = [ended if each is run else each for each in runs]
        return ended

    def _tied(self, errors: float) -> list[Candidate]:
        """Return the run that ended lowest, and those whose losses are higher by less than so many
        standard errors, compared as in Vuong's test (1989).
        """
        best, *others = self._ranked()
        error = self.descents.sample.error
        return [best] + [
            run
            for run in others
            if run.settled and run.loss - best.loss < errors * error(run.A, best.A)
        ]

    def _findings(self, chosen: Candidate) -> Findings:
        """Return what all runs together say about one of them."""
        runs = {
            id(run): Run(
                unstack(run.A, self.problem.shape), run.loss, run.settled, frozenset(run.origins)
            )
            for run in self._ranked()
        }

        def error(one: Run, two: Run) -> float:
            return self.descents.sample.error(stack(one.factors), stack(two.factors))

        resolution = self.descents.resolution(chosen.A)
        needed = NEEDED if self._says_little else 2
        return Findings(list(runs.values()), runs[id(chosen)], resolution, error, needed)

    def _alike(self, A: np.ndarray, B: np.ndarray) -> bool:
        one, two = (unstack(each, self.problem.shape) for each in (A, B))
        return same_components(one, two, ALIKE)

    def _compared(self, best: Candidate) -> Comparison:
        """Return the independent runs; those that were left behind have not come to their end."""
        others = [run for run in self.runs if run is not best]
        ended = [run for run in others if run.settled]
        return Comparison(
            [Ended(unstack(run.A, self.problem.shape), run.loss) for run in ended],
            own=len(others) < len(self.runs),
            n_stopped=len(others) - len(ended),
            settled=True,
        )

    def _ranked(self) -> list[Candidate]:
        return sorted(self.runs + self.bred, key=lambda candidate: candidate.loss)

    @property
    def _care(self) -> float:
        return CROWDED_CARE if self.crowded else 1.0


def _run(search: Search) -> Result:
    fit = DenseSearch(search.problem, search.settings, search.rng, search.observe)
    return fit.from_scratch()


dense = Strategy(
    "dense",
    _run,
    finish_of,
    lambda problem: check_dense(problem, "dense"),
    compares_starts=True,
)
