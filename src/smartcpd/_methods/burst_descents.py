"""Descents by bursts of steps: passes of EM for counts, and quasi-Newton steps for square roots
where those would creep.

Passes over counts are made in float32, with entries held above 0, by one thread. They end near the
solution that more careful ones find, in a fraction of their time; the latter have the last word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import parts
from smartcpd._common.threads import share
from smartcpd._data.storage import SparseTensor
from smartcpd._methods.descents import Candidate
from smartcpd._methods.loop import Look, Loop, noted
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import FINE, Bursts, Descended, is_curved, serves
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate, objective_of
from smartcpd._problem.problem import Problem

A_BURST, LEAST_BURST, WORK = 50, 5, 2e7
"""Number of steps in one call: the most of them, and the fewest where so many entries are read by
more; a user's limit of time is looked at in between."""
MOST_BURSTS = 40
MOST_EVENTS = 1 << 20
"""Up to so many counts, passes by one thread are as quick as more careful ones by several."""

LIFTED_PASSES, LIFT = 10, 0.03
"""Number of the first passes over all counts of what was found on a sample, and the mass that lifts
their entries."""


@dataclass
class BurstDescents:
    """Steps from some mixtures, some at a time; those of different ones side by side."""

    problem: Problem
    tracker: Tracker
    bursts: Bursts
    phase: str
    mixtures: list[Mixture]
    least: float
    """What a few steps must gain for a descent to go on: a sum over all cells."""
    rival: Candidate | None
    ends: list[Candidate | None]
    """Where descents have ended."""
    losses: list[float]
    settled: list[bool]
    done: int = 0
    kept: ClassVar = ("mixtures", "ends", "losses", "settled", "done")

    def look(self) -> Look:
        n_stored, n_observed = self.problem.storage.n_stored, self.problem.storage.n_observed
        n_steps = int(np.clip(WORK / n_stored, LEAST_BURST, A_BURST))
        going = self._going
        made: dict[int, Descended] = {}

        def work(first: int, end: int) -> None:
            for k in going[first:end]:
                made[k] = self.bursts.descended(self.mixtures[k], n_steps, self.least)

        share(work, len(going), self.tracker.settings.n_threads)
        for k in going:
            found = made[k]
            self.tracker.entries += found.n_steps * n_stored
            self.tracker.epoch += found.n_steps
            if np.isfinite(found.loss):
                self.mixtures[k], self.losses[k] = found.mixture, found.loss / n_observed
            self.settled[k] = found.settled
        self.tracker.check_time()
        self.done += 1
        best = min(going, key=lambda k: self.losses[k])
        return Look(self.mixtures[best].balanced(), Estimate(self.losses[best]), self.phase)

    def move(self) -> list[Candidate] | None:
        for k in self._going:
            self.ends[k] = self._end(k)
        if self._going:
            return None
        return [end for end in self.ends if end is not None]

    @property
    def _going(self) -> list[int]:
        return [k for k, end in enumerate(self.ends) if end is None]

    def _end(self, k: int) -> Candidate | None:
        """Where a descent ends, if it has come to its end or to the rival."""
        A, shape = self.mixtures[k].balanced(), self.problem.shape
        rival = self.rival
        joined = rival is not None and same_components(parts(A, shape), parts(rival.A, shape))
        if not (self.settled[k] or joined or self.done >= MOST_BURSTS):
            return None
        objective = objective_of(
            self.problem.storage, self.problem.loss, self.tracker.settings.n_threads
        )
        loss = objective.estimate(A).loss
        if joined and not self.settled[k]:
            assert rival is not None
            return Candidate(A, min(loss, rival.loss), rival.settled)
        return Candidate(A, loss, self.settled[k])


def suit(problem: Problem, A: np.ndarray) -> bool:
    """Whether descents serve a problem, and are quick at the factors A."""
    if not serves(problem.loss):
        return False
    if not is_curved(problem.loss):
        return _bursts(problem).paired and problem.storage.n_stored <= MOST_EVENTS
    loss, _ = _bursts(problem).improved(Mixture.of(A, problem.shape), 1, 0.0)
    return bool(np.isfinite(loss))


def descended(
    problem: Problem,
    tracker: Tracker,
    starts: Sequence[np.ndarray],
    phase: str,
    least: float,
    rival: Candidate | None = None,
) -> list[Candidate]:
    """Go down from some stacked factors until a few steps gain no more than ``least`` of the mean
    loss; or until the components of a ``rival`` are reached.
    """
    run = BurstDescents(
        problem,
        tracker,
        _bursts(problem),
        phase,
        [Mixture.of(A, problem.shape) for A in starts],
        least * problem.storage.n_observed,
        rival,
        [None] * len(starts),
        [math.inf] * len(starts),
        [False] * len(starts),
    )
    found: list[Candidate] = tracker.stage(lambda: Loop(tracker, run, record=noted).run())
    return found


def lifted(problem: Problem, tracker: Tracker, models: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Models of a sample of counts after some passes over all of them, in which rows that were
    empty in the sample grow.
    """
    bursts, made = _bursts(problem), dict[int, Mixture]()

    def work(first: int, end: int) -> None:
        for k in range(first, end):
            start = Mixture.of(models[k], problem.shape)
            made[k] = bursts.improved(start, LIFTED_PASSES, LIFT)[1]

    share(work, len(models), tracker.settings.n_threads)
    tracker.entries += len(models) * LIFTED_PASSES * problem.storage.n_stored
    tracker.epoch += len(models) * LIFTED_PASSES
    tracker.check_time()
    return [made[k].balanced() for k in range(len(models))]


def _bursts(problem: Problem) -> Bursts:
    return Bursts.over(problem.stored_as(SparseTensor), problem.loss, FINE)
