"""Descents of mixtures by extrapolated EM, which end where next to nothing is left to gain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from smartcpd._common.factors import same_components
from smartcpd._common.stacked import parts
from smartcpd._methods.base import Settings
from smartcpd._methods.descents import DEFAULT_TOL, PATIENCE, Candidate
from smartcpd._methods.extrapolation import Extrapolated
from smartcpd._methods.loop import Loop, noted
from smartcpd._methods.merging import merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mm import Passes
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem

WINDOW = 5
"""Number of passes over which progress is judged."""
FINISHED = (2e-5, 2e-5, 1e-2)
"""What a finish may leave: this share of the loss, but no less and no more than these shares of its
resolution."""
COMPARED = 10.0
"""How many times as much a run may leave that is only to be compared with others."""
MOST_PASSES = 2000
SMOOTHING = 3.0
"""Number of events that are spread evenly over the rows of each mode while components are sought:
entries that look empty early on can then still grow."""
COOLING = (SMOOTHING, SMOOTHING, 1.0, 0.3)
"""The smoothing of the passes after components were merged."""
FILLING_PASSES, FILLING = 5, 1.0
"""Number and smoothing of the first passes over all data of what was found on a sample."""
Step = Callable[[Mixture, float], Mixture]
"""A pass that begins with a mixture, and smooths what it leads to by so many events."""
MERGES = 3
"""In how many turns a wide mixture is merged to the rank, with passes in between."""


class MixtureDescents:
    """Descents of mixtures over a whole tensor, under the loss of the problem."""

    def __init__(self, problem: Problem, settings: Settings, tracker: Tracker) -> None:
        self.problem = problem
        self.tracker = tracker
        self.n_threads = settings.n_threads
        self.sample = CellSample(problem)
        # Users ask for more or less care by tol.
        self.care = settings.stopping.tol / DEFAULT_TOL

    def compile(self, A: np.ndarray) -> None:
        """Have everything compiled before a clock starts."""
        self._passes().compile(A)
        self.sample.resolution(A)

    def resolution(self, A: np.ndarray) -> float:
        """Return how far noise alone moves the minimal loss."""
        return self.sample.resolution(A)

    def narrowed(self, A: np.ndarray, phase: str) -> np.ndarray:
        """A wide model after passes in which its components are merged to the rank."""
        passes = self._passes()

        def step(mixture: Mixture, smoothing: float) -> Mixture:
            self._count_pass()
            return passes.step(mixture, smoothing=smoothing)[1]

        return narrowed(Mixture.of(A, self.problem.shape), self.problem.rank, step).balanced()

    def filled(self, A: np.ndarray) -> np.ndarray:
        """A model of a sample after passes over all of the data, in which rows that were empty in
        the sample grow.
        """
        passes, mixture = self._passes(), Mixture.of(A, self.problem.shape)
        for _ in range(FILLING_PASSES):
            self._count_pass()
            # A lengthened step multiplies what was there, which may be nothing.
            _, mixture = passes.step(mixture, careful=True, smoothing=FILLING)
        return mixture.balanced()

    def run(
        self,
        A: np.ndarray,
        phase: str,
        leaves: float = 1.0,
        most: int = MOST_PASSES,
        rival: Candidate | None = None,
        joins: bool = False,
    ) -> Candidate:
        """Make passes until ``leaves`` times what a finish may leave is left to gain, or ``most``
        of them; or until a loss as low as the ``rival``'s seems out of reach. A run that
        ``joins`` ends when it has the rival's components, and is given the loss of those.
        """
        mixture = Mixture.of(A, self.problem.shape)
        passes = self._passes()
        tracker = self.tracker
        run = _Descent(
            tracker,
            passes,
            self.problem.storage.n_stored,
            phase,
            mixture,
            accepted=mixture,
            descents=self,
            leaves=leaves * self.care,
            most=most,
            rival=rival,
            joins=joins,
        )
        return tracker.stage(lambda: Loop(tracker, run, passes, record=noted).run(), passes)

    def _passes(self) -> Passes:
        return Passes.over(self.problem, self.n_threads)

    def _count_pass(self) -> None:
        self.tracker.entries += self.problem.storage.n_stored
        self.tracker.epoch += 1
        self.tracker.check_time()


@dataclass
class _Descent(Extrapolated[Mixture]):
    """Extrapolated passes, and when to end them."""

    descents: MixtureDescents = field(kw_only=True)
    leaves: float = field(kw_only=True)
    most: int = field(kw_only=True)
    rival: Candidate | None = field(kw_only=True)
    joins: bool = field(kw_only=True)
    losses: list[float] = field(default_factory=list)
    kept: ClassVar = (*Extrapolated.kept, "losses")

    def move(self) -> Candidate | None:
        super().move()
        if not self.losses or self.loss < self.losses[-1]:
            self.losses.append(self.loss)
        else:
            self.losses.append(self.losses[-1])
        if len(self.losses) % WINDOW:
            return None
        A = self.steps.factors(self.accepted)
        if self._has_settled(A):
            return Candidate(A, self.loss, True)
        if self.rival is not None:
            shape = self.descents.problem.shape
            if self.joins and same_components(parts(A, shape), parts(self.rival.A, shape)):
                return Candidate(A, min(self.loss, self.rival.loss), self.rival.settled)
            if self.loss - self.rival.loss > PATIENCE * self._gain(1):
                return Candidate(A, self.loss, False)
        return Candidate(A, self.loss, False) if len(self.losses) >= self.most else None

    def _gain(self, windows_ago: int) -> float:
        """Return by how much a window of passes lowered the loss: the last, or one before it."""
        last = len(self.losses) - 1 - (windows_ago - 1) * WINDOW
        if last - WINDOW < 0:
            return math.inf
        return self.losses[last - WINDOW] - self.losses[last]

    def _has_settled(self, A: np.ndarray) -> bool:
        """Whether gains, which fall from window to window, add up to little from here on."""
        last, before = self._gain(1), self._gain(2)
        if not math.isfinite(before):
            return False
        falling = min(max(last / before, 0.7), 0.95) if before > 0 else 0.7
        left = last * falling / (1 - falling)
        return left <= self.leaves * self._allowance(A)

    def _allowance(self, A: np.ndarray) -> float:
        share, least, most = FINISHED
        resolution = self.descents.resolution(A)
        return min(max(share * abs(self.loss), least * resolution), most * resolution)


def narrowed(mixture: Mixture, rank: int, step: Step) -> Mixture:
    """A wide mixture after passes in which its components are merged to the rank."""
    a_turn = max(1, -(-(mixture.rank - rank) // MERGES))
    while mixture.rank > rank:
        mixture = merged_by_information(mixture, max(rank, mixture.rank - a_turn))
        mixture = step(mixture, SMOOTHING)
    for smoothing in COOLING:
        mixture = step(mixture, smoothing)
    return mixture
