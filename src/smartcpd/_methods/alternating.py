"""Alternating optimisation: each factor in turn is replaced by a better one, the others fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._methods.base import Result
from smartcpd._methods.loop import Look, Loop
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate


class Updates(Protocol):
    """A method's update of one factor; ``kept`` names what it remembers between visits."""

    kept: ClassVar[tuple[str, ...]]

    def value(self, A: np.ndarray) -> float:
        """The mean loss of the stacked factors, without penalties."""
        ...

    def updated(self, A: np.ndarray, mode: int) -> np.ndarray:
        """Return a factor of one mode that is better than the present one."""
        ...


@dataclass
class Sweeps:
    """The state of a run: the factors it is at."""

    tracker: Tracker
    updates: Updates
    phase: str
    A: np.ndarray
    kept: ClassVar = ("A",)

    def look(self) -> Look:
        return Look(self.A, Estimate(self.updates.value(self.A)), self.phase)

    def move(self) -> None:
        """Improve the factor of each mode once, in turn."""
        shape = self.tracker.problem.shape
        starts = offsets(shape)
        for mode in range(len(shape)):
            factor = self.updates.updated(self.A, mode)
            self.tracker.check_time()
            self.A = self.A.copy()
            self.A[starts[mode] : starts[mode + 1]] = factor
        self.tracker.epoch += 1


def alternate(tracker: Tracker, updates: Updates, phase: str, *others: Any) -> Result:
    """Sweep over the modes from the tracker's start, until the tracker says stop.

    ``others`` are further objects that updates change.
    """
    sweeps = Sweeps(tracker, updates, phase, tracker.best.copy())
    return tracker.follow(lambda: Loop(tracker, sweeps, updates, *others).run())
