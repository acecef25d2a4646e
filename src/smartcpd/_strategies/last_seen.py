"""The best model that was seen so far, for an interrupt that comes where no run can catch it."""

from __future__ import annotations

import math

import numpy as np

from smartcpd._methods.base import Epoch, Result
from smartcpd._problem.history import History, Status
from smartcpd._problem.problem import Problem


class LastSeen:
    """Keeps the best factors of all runs of a fit, and the rows of their histories."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._history = History()
        self._objective = math.inf
        self._factors: list[np.ndarray] | None = None

    def see(self, epoch: Epoch) -> None:
        """Remember the epoch, and its factors if they are the best of those that could be
        returned: starts with more components, or of a part of the data, are not.
        """
        self._history.append(epoch.record)
        if not epoch.is_best or not epoch.record.objective < self._objective:
            return
        factors, problem = epoch.factors(), self._problem
        if [A.shape for A in factors] == [(size, problem.rank) for size in problem.shape]:
            self._objective = epoch.record.objective
            self._factors = [A.copy() for A in factors]

    def result(self) -> Result | None:
        """The result of a fit that was interrupted between two runs, if there is one."""
        if self._factors is None:
            return None
        last = self._history[-1].epoch
        reason = f"Interrupted after epoch {last}; this is the best model until then."
        status = Status(False, reason, interrupted=True)
        return Result(self._factors, self._history, status, ended=True)
