"""Extrapolation of downhill steps: each begins where the last two points lead to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from smartcpd._objectives import Estimate
from smartcpd._problem.history import Status

if TYPE_CHECKING:
    from smartcpd._methods.tracker import Tracker

MOMENTUM = 0.9
MAX_CHANGE = 5.0
"""The largest ratio of an entry to what it was before that is extrapolated."""
TINY = 1e-300


class Point(Protocol):
    """A point of a fit that can be extrapolated, whatever describes it."""

    def beyond(self: PointT, origin: PointT, power: float, /) -> PointT:
        """Return the point past this one on the line from ``origin``, straight between
        logarithms.
        """
        ...


PointT = TypeVar("PointT", bound=Point)


class Steps(Protocol[PointT]):
    """Full passes over the data: each gives the loss of a point and a better point."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the attributes that change from step to step, besides the point."""

    def step(self, point: PointT, careful: bool = False, /) -> tuple[float, PointT]:
        """Return the loss of a point and a better point; a careful step never raises the loss."""
        ...

    def factors(self, point: PointT, /) -> np.ndarray:
        """The stacked factors, inside their constraints."""
        ...


def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Return the ratios by which entries changed, within what is believed to go on like that."""
    return np.clip(new / np.maximum(old, TINY), 1 / MAX_CHANGE, MAX_CHANGE)


def descend(
    tracker: Tracker, steps: Steps[PointT], point: PointT, entries: int, phase: str
) -> Status:
    """Extrapolated steps until the tracker says stop.

    A step begins where the last two points lead to; if the loss there is higher than before, the
    next one begins at the last point that was accepted, without momentum and with care.
    """
    run = _Run(point, accepted=point)
    tracker.begin_with(steps.factors(point))
    seen = tracker.loop(run, steps)
    while True:
        start = run.leap()
        value, following = steps.step(start, run.careful)
        tracker.entries += entries
        tracker.epoch += 1
        if value > run.loss and run.previous is not None:
            run.fall_back()
            if tracker.out_of_time:
                status = tracker.record(steps.factors(run.accepted), Estimate(run.loss), phase)
                assert status is not None
                return status
        else:
            status = tracker.record(steps.factors(start), Estimate(value), phase)
            if status is not None:
                return status
            run.accept(start, value, following)
        seen()


@dataclass
class _Run(Generic[PointT]):
    """The state of a run of extrapolated steps."""

    point: PointT
    accepted: PointT
    """The last point whose loss was seen and lower than before."""
    loss: float = math.inf
    """The loss of the accepted point."""
    previous: PointT | None = None
    momentum: float = 1.0
    careful: bool = False
    kept: ClassVar = ("point", "accepted", "loss", "previous", "momentum", "careful")

    def leap(self) -> PointT:
        """Return the point at which the next step begins."""
        if self.previous is None:
            return self.point
        longer = (1 + math.sqrt(1 + 4 * self.momentum**2)) / 2
        stretch = min((self.momentum - 1) / longer, MOMENTUM)
        self.momentum = longer
        return self.point.beyond(self.previous, 1 + stretch) if stretch > 0 else self.point

    def fall_back(self) -> None:
        self.point, self.previous, self.momentum, self.careful = self.accepted, None, 1.0, True

    def accept(self, start: PointT, loss: float, following: PointT) -> None:
        self.accepted, self.loss, self.careful = start, loss, False
        self.previous, self.point = self.point, following
