"""Descents by bursts of steps: passes of EM for counts, and quasi-Newton steps for square roots
where those would creep.

Passes over counts are made in float32, with entries held above 0, by one thread. They end near the
solution that more careful ones find, in a fraction of their time; the latter have the last word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import parts
from smartcpd._data.storage import SparseTensor
from smartcpd._methods.descents import Candidate
from smartcpd._methods.loop import Look, Loop, noted
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import FINE, Bursts, is_curved, serves
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
class BurstDescent:
    """Steps from a mixture, some at a time."""

    problem: Problem
    tracker: Tracker
    bursts: Bursts
    phase: str
    mixture: Mixture
    least: float
    """What a few steps must gain for the descent to go on: a sum over all cells."""
    rival: Candidate | None
    loss: float = np.inf
    settled: bool = False
    done: int = 0
    kept: ClassVar = ("mixture", "loss", "settled", "done")

    def look(self) -> Look:
        n_stored, n_observed = self.problem.storage.n_stored, self.problem.storage.n_observed
        n_steps = int(np.clip(WORK / n_stored, LEAST_BURST, A_BURST))
        found = self.bursts.descended(self.mixture, n_steps, self.least)
        self.tracker.entries += found.n_steps * n_stored
        self.tracker.epoch += found.n_steps
        self.tracker.check_time()
        if np.isfinite(found.loss):
            self.mixture, self.loss = found.mixture, found.loss / n_observed
        self.settled = found.settled
        self.done += 1
        return Look(self.mixture.balanced(), Estimate(self.loss), self.phase)

    def move(self) -> Candidate | None:
        A, shape = self.mixture.balanced(), self.problem.shape
        rival = self.rival
        joined = rival is not None and same_components(parts(A, shape), parts(rival.A, shape))
        if not (self.settled or joined or self.done >= MOST_BURSTS):
            return None
        objective = objective_of(
            self.problem.storage, self.problem.loss, self.tracker.settings.n_threads
        )
        loss = objective.estimate(A).loss
        if joined and not self.settled:
            assert rival is not None
            return Candidate(A, min(loss, rival.loss), rival.settled)
        return Candidate(A, loss, self.settled)


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
    A: np.ndarray,
    phase: str,
    least: float,
    rival: Candidate | None = None,
) -> Candidate:
    """Go down from stacked factors until a few steps gain no more than ``least`` of the mean loss;
    or until the components of a ``rival`` are reached.
    """
    run = BurstDescent(
        problem,
        tracker,
        _bursts(problem),
        phase,
        Mixture.of(A, problem.shape),
        least * problem.storage.n_observed,
        rival,
    )
    found: Candidate = tracker.stage(lambda: Loop(tracker, run, record=noted).run())
    return found


def lifted(problem: Problem, tracker: Tracker, A: np.ndarray) -> np.ndarray:
    """A model of a sample of counts after some passes over all of them, in which rows that were
    empty in the sample grow.
    """
    _, mixture = _bursts(problem).improved(Mixture.of(A, problem.shape), LIFTED_PASSES, LIFT)
    tracker.entries += LIFTED_PASSES * problem.storage.n_stored
    tracker.epoch += LIFTED_PASSES
    tracker.check_time()
    return mixture.balanced()


def _bursts(problem: Problem) -> Bursts:
    return Bursts.over(problem.stored_as(SparseTensor), problem.loss, FINE)
