"""The fit of dense data from scratch: a core, a quasi-Newton finish, a second look.

Least squares on a compressed tensor gives a start, often one that two independent runs agree on at
once. A quasi-Newton method takes it to the optimum of the loss. Where the runs do not agree, wider
starts are fitted, reduced to the rank and compared by loss, and the best two are bred, until the
lowest loss has been found twice. Where there are more components than a mode has rows, losses often
do not tell solutions apart; then the most probable one is kept.
"""

from __future__ import annotations

import math
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
from smartcpd._strategies.starts import random_factors

AGREED_STEPS, ALIKE = 60, 0.7
"""A start that was found twice is trusted if its finish takes no more steps than this, and leaves
its components alike, by the product of their cosines."""
WIDE_STEPS, CROWDED_WIDE_STEPS = 20, 60
RUNS, CROWDED_RUNS = (2, 5), (20, 24)
"""The least and the largest number of runs; the second pair where there are more components than a
mode has rows.
"""
COMPARED, SAME_LOSS = 5e-4, 2e-3
"""Changes of the loss, relative to its resolution: what a run that is to be compared may still
gain, and the difference between runs taken for the same.
"""
TOLD_APART = 1.0
"""Number of standard errors between the losses of two solutions from which on the data decides for
one.
"""
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
                return found.status("Two independent starts agreed on it.")
            self.runs.append(self.descents.run(found.A, "run 1", COMPARED * self._care))
        fewest, most = (max(n, self.n_init) for n in (CROWDED_RUNS if self.crowded else RUNS))
        for number in range(len(self.runs) + 1, most + 1):
            self._run(number)
            if number >= fewest and self._confirmed(self._ranked()[0]):
                break
        chosen = self._chosen()
        if chosen is not self._ranked()[0]:
            self.tracker.begin_with(chosen.A)
        status = self._finish(chosen.A, self._remark(chosen))
        self.tracker.comparison = self._compared(chosen)
        return status

    def _run(self, number: int) -> None:
        """Make another run: from a start of its own, or, now and then, from the best two so far."""
        if len(self.runs) >= 2 and len(self.bred) < len(self.runs) // 2:
            one, two = (c.A for c in self._ranked()[:2])
            # The two are put side by side, each at half its size.
            both = np.hstack([one, two]) * 0.5 ** (1 / len(self.problem.shape))
            self.bred.append(self._narrowed(self.descents.floored(both), f"run {number}, bred"))
        else:
            wide = self.tracker.stage(self.starts.wide)
            self.runs.append(self._narrowed(wide, f"run {number}"))

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

    def _finish(self, A: np.ndarray, remark: str = "") -> Status:
        return self.descents.run(A, "finish", finished(self.problem)).status(remark)

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

    def _tied(self, errors: float = TOLD_APART) -> list[Candidate]:
        """Return the run that ended lowest, and those that the data does not decide against: their
        losses are apart by less than so many standard errors, compared as in Vuong's test (1989).
        """
        best, *others = self._ranked()
        error = self.descents.sample.error
        return [best] + [
            run
            for run in others
            if run.settled and run.loss - best.loss < errors * error(run.A, best.A)
        ]

    def _remark(self, chosen: Candidate) -> str:
        """Return a remark on how a run compares with the others."""
        n = len(self.runs) + len(self.bred)
        remark = (
            f"Two of {n} runs found it independently."
            if self._confirmed(chosen)
            else f"Not confirmed: no two of {n} runs ended at the same loss, so a better solution "
            "may exist; compare fits with other seeds, or with n_init."
        )
        rivals = sum(not self._alike(run.A, chosen.A) for run in self._tied())
        if rivals:
            remark += (
                f" The data does not decide: {rivals} of them ended with other components, their "
                "losses apart by less than the standard error. Trust what they have in common "
                "(n_init=5, consensus=True), or use a lower rank."
            )
        return remark

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

    def _confirmed(self, found: Candidate) -> bool:
        """Whether two independent runs ended at its loss."""
        margin = SAME_LOSS * self._care * self.descents.resolution(found.A)
        margin += 1e-7 * abs(found.loss)
        return sum(abs(run.loss - found.loss) <= margin for run in self.runs) >= 2

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
