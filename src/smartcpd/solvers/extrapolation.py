"""Downhill steps made longer: each begins where the last two points lead to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from smartcpd.history import Status
from smartcpd.objectives import Estimate

if TYPE_CHECKING:
    from smartcpd.solvers.tracker import Tracker

MOMENTUM = 0.9
MAX_CHANGE = 5.0
"""The most an entry's ratio to what it was before may count for."""
TINY = 1e-300


class Point(Protocol):
    """Where a fit is, whatever describes it."""

    def beyond(self: PointT, origin: PointT, power: float, /) -> PointT:
        """From ``origin`` past this point, on a straight line between logarithms."""
        ...


PointT = TypeVar("PointT", bound=Point)


class Steps(Protocol[PointT]):
    """Full passes over the data: each gives the loss of a point and a better point."""

    def step(self, point: PointT, careful: bool = False, /) -> tuple[float, PointT]:
        """A careful step never raises the loss; others may be longer."""
        ...

    def factors(self, point: PointT, /) -> np.ndarray:
        """The stacked factors, inside their constraints."""
        ...


def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """How entries changed, within what is believed to go on like that."""
    return np.clip(new / np.maximum(old, TINY), 1 / MAX_CHANGE, MAX_CHANGE)


def descend(
    tracker: Tracker, steps: Steps[PointT], point: PointT, entries: int, phase: str
) -> Status:
    """Extrapolated steps until the tracker says stop.

    A step begins where the last two points lead to; if the loss there is higher than before, the
    next one begins at the last point that was accepted, without momentum and with care.
    """
    accepted, loss_before, previous = point, math.inf, None
    momentum, careful = 1.0, False
    tracker.begin_with(steps.factors(point))
    while True:
        start = point
        if previous is not None:
            longer = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            stretch = min((momentum - 1) / longer, MOMENTUM)
            if stretch > 0:
                start = point.beyond(previous, 1 + stretch)
            momentum = longer
        value, following = steps.step(start, careful)
        careful = False
        tracker.entries += entries
        tracker.epoch += 1
        if value > loss_before and previous is not None:
            point, previous, momentum, careful = accepted, None, 1.0, True
            if tracker.out_of_time:
                status = tracker.record(steps.factors(accepted), Estimate(loss_before), phase)
                assert status is not None
                return status
            continue
        status = tracker.record(steps.factors(start), Estimate(value), phase)
        if status is not None:
            return status
        accepted, loss_before = start, value
        point, previous = following, point
