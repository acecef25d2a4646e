"""Extrapolation of downhill steps: each begins where the last two points lead to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from smartcpd._methods.loop import Look, Loop
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate
from smartcpd._problem.history import Status

MOMENTUM = 0.9


class LogPoint(Protocol):
    """A point of a fit that can be extrapolated, whatever describes it."""

    def beyond(self: PointT, origin: PointT, power: float, /) -> PointT:
        """Return the point past this one on the line from ``origin``, straight between
        logarithms.
        """
        ...


PointT = TypeVar("PointT", bound=LogPoint)


class FullPasses(Protocol[PointT]):
    """Full passes over the data: each gives the loss of a point and a better point."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the attributes that change from step to step, besides the point."""

    def step(self, point: PointT, careful: bool = False, /) -> tuple[float, PointT]:
        """Return the loss of a point and a better point; a careful step never raises the loss."""
        ...

    def factors(self, point: PointT, /) -> np.ndarray:
        """The stacked factors, inside their constraints."""
        ...


def descend(
    tracker: Tracker, steps: FullPasses[PointT], point: PointT, entries: int, phase: str
) -> Status:
    """Extrapolated steps until the tracker says stop.

    A step begins where the last two points lead to; if the loss there is higher than before, the
    next one begins at the last point that was accepted, without momentum and with care.
    """
    tracker.begin_with(steps.factors(point))
    run = Extrapolated(tracker, steps, entries, phase, point, accepted=point)
    return Loop(tracker, run, steps).run()


@dataclass
class Extrapolated(Generic[PointT]):
    """The state of extrapolated steps: the current factors and those they came from."""

    tracker: Tracker
    steps: FullPasses[PointT]
    entries: int
    phase: str
    point: PointT
    accepted: PointT
    """The last point whose loss was seen and lower than before."""
    loss: float = math.inf
    """The loss of the accepted point."""
    previous: PointT | None = None
    momentum: float = 1.0
    careful: bool = False
    _found: tuple[PointT, float, PointT] | None = None
    """The step that was seen last: where it began, the loss there, and where it led."""
    kept: ClassVar[tuple[str, ...]] = (
        "point",
        "accepted",
        "loss",
        "previous",
        "momentum",
        "careful",
    )

    def look(self) -> Look | None:
        """A step from where the last two points lead to; None where that was not downhill."""
        start = self._leap()
        value, following = self.steps.step(start, self.careful)
        self.tracker.entries += self.entries
        self.tracker.epoch += 1
        if value > self.loss and self.previous is not None:
            self._fall_back()
            self._found = None
            if not self.tracker.out_of_time:
                return None
            return Look(self.steps.factors(self.accepted), Estimate(self.loss), self.phase)
        self._found = start, value, following
        return Look(self.steps.factors(start), Estimate(value), self.phase)

    def move(self) -> Any:
        """Accept the step that was seen, unless it led uphill."""
        if self._found is not None:
            start, self.loss, following = self._found
            self.accepted, self.careful = start, False
            self.previous, self.point = self.point, following

    def _leap(self) -> PointT:
        """Return the factors that the next step begins with."""
        if self.previous is None:
            return self.point
        longer = (1 + math.sqrt(1 + 4 * self.momentum**2)) / 2
        stretch = min((self.momentum - 1) / longer, MOMENTUM)
        self.momentum = longer
        return self.point.beyond(self.previous, 1 + stretch) if stretch > 0 else self.point

    def _fall_back(self) -> None:
        self.point, self.previous, self.momentum, self.careful = self.accepted, None, 1.0, True
