"""Several starts of one fit: all run a little, the best run on, and the lowest loss is kept."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import stack
from smartcpd._kernels.uninterrupted import interrupts_recognised
from smartcpd._methods.base import Comparison, Ended, Epoch, Method, Observer, Result, Settings
from smartcpd._objectives import Objective, objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd._problem.history import Finding
from smartcpd._problem.problem import Problem
from smartcpd._strategies.auto import from_a_start
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.findings import ALONE, CHANGED, Findings, Run
from smartcpd._strategies.last_seen import LastSeen
from smartcpd._strategies.repair import flaws, repaired
from smartcpd._strategies.sequence import FitSequence
from smartcpd._strategies.settling import with_settled_rows
from smartcpd._strategies.warm_starts import warmed

HEATS = 20
"""Number of epochs after which starts are compared for the first time."""
SURVIVORS = 3
"""One of so many starts runs on, at least two."""
MOST_REPAIRS = 2
MOST_RETURNS = 4
"""How often a descent goes on that was slow, not done."""
FAR, FAR_OF_LITTLE = 0.01, 0.002
"""The relative KKT residual of a descent that is not done, however little its last steps gained:
near a saddle they gain next to nothing. Nineteen of twenty fits that are done end below the first;
six of seven below the second, which counts where data is so little that to look again costs
nothing."""
LITTLE = 1 << 16
"""Number of entries in a pass over little data."""


Start = list[np.ndarray] | None
"""The factors that a run begins with; None for a strategy, which finds its starts itself."""


class Scored(NamedTuple):
    """A result, with its loss over all cells and what penalties add to it."""

    result: Result
    loss: float
    objective: float
    error: float = 0.0
    """The standard error of the loss, where that comes from a sample of the cells."""


@dataclass
class Restarts:
    """The runs of one fit. Which of them is best does not depend on how many run at a time."""

    problem: Problem
    settings: Settings
    solver: Strategy | Method
    n_jobs: int
    observe: Observer
    warm: str | None = None
    """The method that improves a random start first."""
    repairs: Method | None = None
    """The method that goes on from a model whose flawed components were replaced, if wanted."""
    settles: bool = False
    """Whether the rows of the first mode of the best result are made exact at the end."""
    whole: bool = False
    """Whether every start is run to its end, repairs and all, however far it falls behind."""
    own_start: bool = True
    """Whether the starts are ours, and others could be compared with them."""
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._seen = LastSeen(self.problem)

    def best(self, starts: Sequence[Start], streams: list[np.random.Generator]) -> Scored:
        """The result with the lowest objective; a strategy finds its starts itself.

        An interrupt ends it with what was found, unless there is nothing yet.
        """
        try:
            with interrupts_recognised():
                return self._best(starts, streams)
        except KeyboardInterrupt:
            found = self._seen.result()
            if found is None:
                raise
            return self._scored(found)

    def _best(self, starts: Sequence[Start], streams: list[np.random.Generator]) -> Scored:
        runs = [FitSequence(self._kept(f"start-{k}"), self._observe) for k in range(len(starts))]
        legs = list(zip(runs, starts, streams, strict=True))
        n_survivors = max(2, math.ceil(len(starts) / SURVIVORS))
        if self.whole or len(starts) <= n_survivors or self.settings.stopping.max_epochs <= HEATS:
            found = self._run(self.solver, legs, None)
        else:
            found = self._run(self.solver, legs, HEATS)
            if not any(s.result.status.interrupted for s in found) and not self.stop.is_set():
                order = np.argsort([s.objective for s in found], kind="stable")[:n_survivors]
                legs = [(runs[k], found[k].result.factors, streams[k]) for k in order]
                method, _ = from_a_start(self.solver, "", self.problem)
                found = self._run(method, legs, None)
        if self.whole and len(found) == len(starts):
            pairs = zip(found, streams, strict=True)
            found = [self._repaired(s, rng, f"start-{k}-") for k, (s, rng) in enumerate(pairs)]
        best = min(found, key=lambda scored: scored.objective)
        comparison = self._compared(best, found, len(starts))
        for scored in found:
            if scored.result.status.interrupted:
                # The status says so, since the comparison was cut short whichever start is best so
                # far.
                status = scored.result.status
                best = best._replace(result=replace(best.result, status=status, ended=True))
        if not self.whole:
            best = self._repaired(best, streams[0])
        if self.settles:
            best = self._settled(best, streams[0])
        result = replace(best.result, comparison=comparison)
        return best._replace(result=self._judged(result, found, n_starts=len(starts)))

    def _compared(self, best: Scored, found: list[Scored], n_starts: int) -> Comparison | None:
        """Return where the starts ended; a run that compares starts of its own says so itself."""
        if n_starts == 1:
            return best.result.comparison
        over = self.stop.is_set() or any(s.result.status.interrupted for s in found)
        ended = [s for s in found if s is not best and (s.result.status.converged or not over)]
        others = [Ended(s.result.factors, s.objective) for s in ended]
        settled = all(s.result.status.converged for s in [best, *ended])
        return Comparison(others, True, n_starts - 1 - len(others), settled)

    def _judged(self, result: Result, found: list[Scored], n_starts: int) -> Result:
        """Return a result that says in its status whether others confirm it."""
        status = result.status
        if not status.converged or not self.own_start:
            return result
        finding = result.finding or ALONE
        if n_starts > 1 and finding.found < 2:
            finding = self._finding(found)
        reason = f"{status.reason} {finding.sentence}"
        return replace(result, status=status._replace(reason=reason, found=finding.found))

    def _finding(self, found: list[Scored]) -> Finding:
        """Return what the starts that were run to their ends say together."""
        sample = CellSample(self.problem)
        runs = [
            Run(s.result.factors, s.objective, s.result.status.converged, frozenset([f"start {k}"]))
            for k, s in enumerate(found, 1)
        ]

        def error(one: Run, two: Run) -> float:
            return sample.error(*(stack(run.factors) for run in (one, two)))

        chosen = min(runs, key=lambda run: run.loss)
        resolution = sample.resolution(stack(chosen.factors))
        return Findings(runs, chosen, resolution, error).told

    def _repaired(self, best: Scored, rng: np.random.Generator, prefix: str = "") -> Scored:
        """Return the result without dead and doubled components, if it is better for that."""
        if self.repairs is None:
            return best
        found = flaws(best.result.factors)
        for number in range(MOST_REPAIRS):
            if best.result.ended or not found.can_be_repaired or not self._can_shrink:
                break
            start = self._inside(repaired(best.result.factors, found, self._exact, rng))
            if not np.isfinite(self._exact.estimate(stack(start)).loss):
                break  # e^m of factors that have grown large may overflow after any change
            settings = self._kept(f"{prefix}repair-{number}")
            sequence = FitSequence.after(settings, self._observe, best.result.history)
            run = sequence.run(self.repairs, self.problem, rng, start, prefix="repaired: ")
            again = self._scored(_told_as(best.result, run))
            if not again.objective < best.objective:
                break
            best, found = again, flaws(again.result.factors)
        remark = str(found)
        if not remark:
            return best
        status = best.result.status
        status = status._replace(reason=f"{status.reason} {remark}")
        return best._replace(result=replace(best.result, status=status))

    def _settled(self, best: Scored, rng: np.random.Generator) -> Scored:
        """Return the result with exact rows in its first mode, if they are at hand.

        Rows that gain much by it show that the descent was slow, not done, and so does a gradient
        that is left; it then goes on, unless that has gained nothing before.
        """
        gains_little = False
        for number in range(MOST_RETURNS + 1):
            found = with_settled_rows(self.problem, best.result, self.settings.n_threads)
            again = None if found is None else self._scored(found)
            if again is None or not again.objective <= best.objective:
                return best
            gain, best = best.objective - again.objective, again
            resolution = CellSample(self.problem).resolution(stack(best.result.factors))
            little = self.settings.stopping.tol * resolution
            is_done = gain <= little and (gains_little or self._residual(best) <= self._far)
            if is_done or self.repairs is None or number == MOST_RETURNS:
                return best
            settings = self._kept(f"return-{number}")
            sequence = FitSequence.after(settings, self._observe, best.result.history)
            factors = best.result.factors
            run = sequence.run(self.repairs, self.problem, rng, factors, prefix="on: ")
            on = self._scored(_told_as(best.result, run))
            if not on.objective < best.objective:
                return best
            gains_little = best.objective - on.objective <= little
            best = on
        return best

    @property
    def _far(self) -> float:
        return FAR_OF_LITTLE if self.problem.storage.n_stored <= LITTLE else FAR

    def _residual(self, scored: Scored) -> float:
        A = stack(scored.result.factors).astype(np.float64)
        return relative_kkt_residual(self.problem, A, self.settings.n_threads)

    def _kept(self, name: str) -> Settings:
        """Return the settings of a run whose checkpoints have a file of their own."""
        return replace(self.settings, journal=self.settings.journal.branch(name))

    @property
    def _can_shrink(self) -> bool:
        """Whether components can be of any size; if not, a small one is as good as any."""
        return not all(c.bounded for c in self.problem.constraints)

    def _inside(self, factors: list[np.ndarray]) -> list[np.ndarray]:
        rules = zip(self.problem.constraints, self.problem.phases[0].mirrors, strict=True)
        return [c.apply(A, mirror=phi) for A, (c, phi) in zip(factors, rules, strict=True)]

    def _run(
        self,
        solver: Strategy | Method,
        legs: Sequence[tuple[FitSequence, Start, np.random.Generator]],
        most_epochs: int | None,
    ) -> list[Scored]:
        def run(sequence: FitSequence, start: Start, rng: np.random.Generator) -> Result:
            if self.warm is not None and sequence.last is None:
                assert start is not None
                warm = warmed(self.warm, self.problem, sequence, start, rng)
                if warm.status.interrupted:
                    return warm
                start = warm.factors
            result = sequence.run(solver, self.problem, rng, start, most_epochs=most_epochs)
            sequence.settings.journal.write()
            return result

        alone = self.n_jobs == 1 or len(legs) == 1
        results = self._in_turn(run, legs) if alone else self._side_by_side(run, legs)
        return [self._scored(result) for result in results]

    def _in_turn(self, run: Callable[..., Result], legs: Sequence[Any]) -> list[Result]:
        """Run one after the other; an interrupt, or a callback that wants to stop, skips those that
        wait.
        """
        results = []
        for leg in legs:
            results.append(run(*leg))
            if results[-1].status.interrupted or self.stop.is_set():
                break
        return results

    def _side_by_side(self, run: Callable[..., Result], legs: Sequence[Any]) -> list[Result]:
        """Run at the same time; an interrupt ends those that run and skips those that wait."""
        with ThreadPoolExecutor(self.n_jobs if self.n_jobs > 0 else os.cpu_count()) as pool:
            futures = [pool.submit(run, *leg) for leg in legs]
            try:
                wait(futures)
            except KeyboardInterrupt:
                self.stop.set()
                for future in futures:
                    future.cancel()
            return [future.result() for future in futures if not future.cancelled()]

    def _observe(self, epoch: Epoch) -> Any:
        self._seen.see(epoch)
        if self.observe(epoch):
            self.stop.set()
        return self.stop.is_set()

    def _scored(self, result: Result) -> Scored:
        loss, error = result.loss, result.loss_error
        if loss is None:
            loss, error = self._exact.estimate(stack(result.factors))
        return Scored(result, loss, loss + self.problem.penalty(result.factors), error)

    @property
    def _exact(self) -> Objective:
        return objective_of(self.problem.storage, self.problem.loss, self.settings.n_threads)


def _told_as(before: Result, after: Result) -> Result:
    """Return a result of steps that began at another one, with what was found out about that one
    while its components are the same.
    """
    if before.finding is None:
        return after
    same = same_components(before.factors, after.factors)
    return replace(after, finding=before.finding if same else CHANGED)
