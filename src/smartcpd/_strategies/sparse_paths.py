"""How a start on sparse data goes down to a solution: by multiplicative passes, or by descents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from smartcpd._methods import burst_descents
from smartcpd._methods.base import Settings
from smartcpd._methods.dense_descent import finished
from smartcpd._methods.descents import Candidate
from smartcpd._methods.mixture_bursts import is_curved
from smartcpd._methods.mixture_descents import COMPARED, MixtureDescents
from smartcpd._methods.sparse_descent import SparseDescents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.problem import Problem


class Left(NamedTuple):
    """What the last few steps of a burst may gain of the loss's resolution."""

    compared: float
    """Where runs are compared."""
    finished: float
    """Where a fit ends."""


LEFT_OF_COUNTS, LEFT_OF_ODDS = Left(3e-3, 5e-4), Left(5e-4, 2e-5)
LEFT = 5e-4
"""What a descent that is to be compared may still gain, relative to the resolution of the loss."""
WIDE_STEPS = 20
"""Number of steps of a wide start before its components are merged."""


def side_by_side(one: np.ndarray, two: np.ndarray, order: int) -> np.ndarray:
    """The components of two models as one, which is their average."""
    return np.hstack([one, two]) * 0.5 ** (1 / order)


class MultipliedPath:
    """Bursts of steps where they serve, multiplicative passes elsewhere and at the end; for the
    losses that have them.
    """

    changing: tuple[Any, ...] = ()

    def __init__(self, problem: Problem, settings: Settings, tracker: Tracker) -> None:
        self.problem, self.tracker = problem, tracker
        self.descents = MixtureDescents(problem, settings, tracker)
        self.compile = self.descents.compile
        self.narrowed = self.descents.narrowed
        self.left = LEFT_OF_ODDS if is_curved(problem.loss) else LEFT_OF_COUNTS

    def filled(self, models: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Models of a sample, with their rows that were empty there lifted off 0."""
        if all(burst_descents.suit(self.problem, A) for A in models):
            return burst_descents.lifted(self.problem, self.tracker, models)
        return [self.descents.filled(A) for A in models]

    def compared(
        self, starts: Sequence[np.ndarray], phase: str, rival: Candidate | None
    ) -> list[Candidate]:
        """Where some starts lead to, as far as a comparison needs to know."""
        if all(burst_descents.suit(self.problem, A) for A in starts):
            return self._descended(starts, phase, self.left.compared, rival)
        joins = rival is not None
        return [self.descents.run(A, phase, COMPARED, rival=rival, joins=joins) for A in starts]

    def finish(self, A: np.ndarray) -> Candidate:
        if burst_descents.suit(self.problem, A):
            (found,) = self._descended([A], "finish", self.left.finished, None)
            if is_curved(self.problem.loss):
                return found
            A = found.A
        return self.descents.run(A, "finish")

    def _descended(
        self, starts: Sequence[np.ndarray], phase: str, left: float, rival: Candidate | None
    ) -> list[Candidate]:
        least = left * self.descents.care * self.descents.resolution(starts[0])
        return burst_descents.descended(self.problem, self.tracker, starts, phase, least, rival)


class DescendedPath:
    """Quasi-Newton descents, for all other losses."""

    def __init__(
        self, problem: Problem, settings: Settings, tracker: Tracker, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.descents = SparseDescents(problem, settings, tracker, rng)
        self.compile = self.descents.compile

    @property
    def changing(self) -> tuple[Any, ...]:
        """What searches change besides the tracker."""
        return self.descents.changing

    def narrowed(self, A: np.ndarray, phase: str) -> np.ndarray:
        """A wide start after some steps, with its components merged."""
        A = self.descents.floored(A)
        wide = self.descents.run(
            A, f"{phase}, {A.shape[1]} components", most=WIDE_STEPS, rough=True
        )
        return self.descents.reduced(wide.A)

    def filled(self, models: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Models of a sample, with their rows that were empty there lifted off 0."""
        return [self.descents.floored(A) for A in models]

    def compared(
        self, starts: Sequence[np.ndarray], phase: str, rival: Candidate | None
    ) -> list[Candidate]:
        """Where descents from some starts end, as far as a comparison needs to know."""
        floored, joins = [self.descents.floored(A) for A in starts], rival is not None
        return [self.descents.run(A, phase, LEFT, rival=rival, joins=joins) for A in floored]

    def finish(self, A: np.ndarray) -> Candidate:
        return self.descents.run(A, "finish", finished(self.problem), last=True)
