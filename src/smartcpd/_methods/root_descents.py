"""Descents by quasi-Newton steps for square roots, where EM would creep."""

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
FINISHED, COMPARED = 2e-5, 5e-4
"""What the last few steps may gain of the loss's resolution, where a fit ends and where it is only
to be compared."""


@dataclass
class RootDescent:
    """Quasi-Newton steps from a mixture, some at a time."""

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
    if not (serves(problem.loss) and is_curved(problem.loss)):
        return False
    bursts = Bursts.over(problem.stored_as(SparseTensor), problem.loss, FINE)
    loss, _ = bursts.improved(Mixture.of(A, problem.shape), 1, 0.0)
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
    bursts = Bursts.over(problem.stored_as(SparseTensor), problem.loss, FINE)
    run = RootDescent(
        problem,
        tracker,
        bursts,
        phase,
        Mixture.of(A, problem.shape),
        least * problem.storage.n_observed,
        rival,
    )
    found: Candidate = tracker.stage(lambda: Loop(tracker, run, record=noted).run())
    return found
