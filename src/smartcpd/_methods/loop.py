"""The one loop of all methods.

A method says what it sees and how it moves. The loop does the rest after every step: the row in the
history, the best factors so far, the user's limits, the reasons to stop and the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from smartcpd._methods.tracker import EndedError, Tracker
from smartcpd._objectives import Estimate
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd._problem.history import Status

SMALL_RESIDUAL = 1e-4
"""The relative KKT residual below which a method that gains nothing has found a solution."""


class Look(NamedTuple):
    """The state that a step shows: its factors and the loss there."""

    A: np.ndarray
    estimate: Estimate
    phase: str


class Steps(Protocol):
    """A method in the middle of its steps.

    Its class names, in ``kept``, the attributes that change from step to step: checkpoints hold
    them.
    """

    def look(self) -> Look | None:
        """The row that this step adds to the history; None for a step that adds none."""
        ...

    def move(self) -> Any:
        """Go on to the next step; anything but None ends the loop, which returns it."""
        ...


class Loop:
    """Steps that a tracker follows."""

    def __init__(
        self,
        tracker: Tracker,
        steps: Steps,
        *others: Any,
        record: Callable[[Tracker, Look], Status | None] | None = None,
    ) -> None:
        """``others`` are further objects that steps change; ``record`` adds a row to the history,
        and returns a status where the row ends the fit.
        """
        self.tracker = tracker
        self.steps = steps
        self.seen = tracker.loop(steps, *others)
        self.record = record or judged

    def run(self) -> Any:
        """Look, record and move until a row or a move ends it."""
        while True:
            row = self.steps.look()
            status = None if row is None else self.record(self.tracker, row)
            if status is not None:
                return status
            ended = self.steps.move()
            if ended is not None:
                return ended
            self.seen()


def judged(tracker: Tracker, row: Look) -> Status | None:
    """Record a row of a method whose progress the tracker judges."""
    return tracker.record(row.A, row.estimate, row.phase)


def noted(tracker: Tracker, row: Look) -> None:
    """Record a row of a method that judges its progress itself."""
    tracker.note(row.A, row.estimate, row.phase)


def unless_converged(tracker: Tracker, row: Look) -> Status | None:
    """Record a row of a stretch that others follow: only a limit of the user's ends it."""
    status = tracker.record(row.A, row.estimate, row.phase)
    return None if status is None or status.converged else status


def raised(tracker: Tracker, row: Look) -> None:
    """Record a row as `unless_converged` does, and raise the end that comes up amid something."""
    status = unless_converged(tracker, row)
    if status is not None:
        raise EndedError(status)


def is_solution(tracker: Tracker, A: np.ndarray) -> bool:
    """Whether the conditions of a minimum hold, as far as a method that gains nothing can tell."""
    residual = relative_kkt_residual(tracker.problem, A, tracker.settings.n_threads)
    return residual < SMALL_RESIDUAL


def ended_by_residual(tracker: Tracker, A: np.ndarray, step: str, other: str) -> Status:
    """The status where a step gains nothing: the residual tells whether that is at a solution."""
    residual = relative_kkt_residual(tracker.problem, A, tracker.settings.n_threads)
    what = f"at epoch {tracker.epoch} {step} no longer lowers the loss"
    if residual < SMALL_RESIDUAL:
        return Status(True, f"Converged: {what}; the KKT residual is {residual:.1e}.")
    return Status(
        False,
        f"Stopped: {what}, although the KKT residual is still {residual:.1e}. Use another start, "
        f"or solver='{other}'.",
    )
