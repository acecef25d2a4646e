"""The fit of dense data from scratch: a core, a quasi-Newton finish, a second look.

Least squares on a compressed tensor gives a start, often one that two independent runs agree on at
once. A quasi-Newton method takes it to the optimum of the loss. Where the runs do not agree, wider
starts are fitted, reduced to the rank and compared by loss, and the best two are bred, until the
lowest loss has been found twice. Where there are more components than a mode has rows, losses often
do not tell solutions apart; then the most probable one is kept.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import itemgetter

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import stack, unstack
from smartcpd._methods.base import Comparison, Ended, Observer, Result, Settings
from smartcpd._methods.dense_descent import check_dense, finished, is_crowded, quasi_newton
from smartcpd._methods.descents import Candidate, Descents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.dense_starts import DenseStarts
from smartcpd._strategies.evidence import log_evidence
from smartcpd._strategies.findings import Findings, Run
from smartcpd._strategies.starts import random_factors

AGREED_STEPS, ALIKE = 60, 0.7
"""A start that was found twice is trusted if its finish takes no more steps than this, and leaves
its components alike, by the product of their cosines."""
WIDE_STEPS, CROWDED_WIDE_STEPS = 20, 60
RUNS, CROWDED_RUNS = (2, 5), (20, 24)
"""The least and the largest number of runs; the second pair where there are more components than a
mode has rows.
"""
COMPARED = 5e-4
"""What a run that is to be compared may still gain, relative to the resolution of the loss."""
COMPRESSED = "a compressed tensor"
"""What runs share whose starts are least squares on a core."""
AS_LOW, DECISIVE = 0.5, math.log(100.0)
"""A solution may be kept though its loss is not the lowest: the most standard errors between the
two, and the least gain in the logarithm of its probability (Jeffreys calls that decisive).
"""
CROWDED_CARE = 0.1
"""Where a model is crowded, runs are compared by this share of what they are compared by else."""


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
        self.crowded = is_crowded(problem)
        self.n_init = settings.n_init
        self.runs: list[Candidate] = []
        self.bred: list[Candidate] = []

    def from_scratch(self) -> Result:
        A = stack(random_factors(self.problem, self.problem.rank, self.rng))
        self.descents.compile(A)
        self.starts.compile()
        self.tracker.begin_with(self.descents.inside(A))
        return self.tracker.follow(self._search)

    def _search(self) -> Status:
        A = self.tracker.stage(self.starts.agreed)
        if A is not None:
            found = self.descents.run(A, "finish", finished(self.problem), AGREED_STEPS)
            if found.settled and self._alike(A, found.A) and not self.crowded and self.n_init == 1:
                return found.status
            found = self.descents.run(found.A, "run 1", COMPARED * self._care)
            self.runs.append(replace(found, origins=(COMPRESSED,)))
        fewest, most = (max(n, self.n_init) for n in (CROWDED_RUNS if self.crowded else RUNS))
        for number in range(len(self.runs) + 1, most + 1):
            self._run(number)
            if number >= fewest and self._findings(self._ranked()[0]).confirmed:
                break
        chosen = self._chosen()
        if chosen is not self._ranked()[0]:
            self.tracker.begin_with(chosen.A)
        findings = self._findings(chosen)
        status = self.descents.run(chosen.A, "finish", finished(self.problem)).status
        self.tracker.finding = findings.sentence
        self.tracker.comparison = self._compared(chosen)
        return status

    def _run(self, number: int) -> None:
        """Make another run: from a start of its own, or, now and then, from the best two so far."""
        if len(self.runs) >= 2 and len(self.bred) < len(self.runs) // 2:
            one, two = self._ranked()[:2]
            # The two are put side by side, each at half its size.
            both = np.hstack([one.A, two.A]) * 0.5 ** (1 / len(self.problem.shape))
            child = self._narrowed(self.descents.floored(both), f"run {number}, bred")
            self.bred.append(replace(child, origins=(*one.origins, *two.origins)))
        else:
            wide = self.tracker.stage(self.starts.wide)
            origin = COMPRESSED if self.starts.core_tells else f"start {number}"
            found = self._narrowed(wide, f"run {number}")
            self.runs.append(replace(found, origins=(origin,)))

    def _narrowed(self, A: np.ndarray, phase: str) -> Candidate:
        """Descend from a wide start to a candidate of the right rank."""
        steps = CROWDED_WIDE_STEPS if self.crowded else WIDE_STEPS
        wide = self.descents.run(A, f"{phase}, {A.shape[1]} components", most=steps, rough=True)
        return self.descents.run(
            self.descents.reduced(wide.A),
            phase,
            COMPARED * self._care,
            rival=next(iter(self._ranked()), None),
            # Users who ask for several runs want to see where each of them ends.
            joins=not self.crowded and self.n_init == 1,
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
        """What all runs say together about one of them."""
        runs = {
            id(run): Run(
                unstack(run.A, self.problem.shape), run.loss, run.settled, frozenset(run.origins)
            )
            for run in self._ranked()
        }

        def error(one: Run, two: Run) -> float:
            return self.descents.sample.error(stack(one.factors), stack(two.factors))

        resolution = self._care * self.descents.resolution(chosen.A)
        return Findings(list(runs.values()), runs[id(chosen)], resolution, error)

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
    lambda problem: quasi_newton,
    lambda problem: check_dense(problem, "dense"),
    compares_starts=True,
)
