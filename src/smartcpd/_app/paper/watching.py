"""Fits of this package as contenders: what each would return if it were stopped, moment by moment.

Every fit runs on one thread, and its clock is that of the processor: it begins with the call,
stands still while a figure's data is kept, and does not count what other programs do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from smartcpd._app.paper.contenders import Contender, Factors, Snapshot, Task
from smartcpd._estimator import SmartCPD
from smartcpd._fitting.found import Report

SPACING = 1.12
"""Each snapshot is later than the one before by at least this factor: axes are logarithmic."""
FIRST_SECOND = 1e-4
NO_END = 10**9
"""Number of epochs that no fit reaches: budgets end fits, not epochs."""

Parameters = Callable[[Task], dict[str, Any]]
"""Returns the parameters of `SmartCPD` for a task."""


@dataclass
class Watch:
    """A callback that keeps what the fit would return if it were stopped, at moments that are
    evenly spaced in the logarithm of time, and ends the fit when its budget is spent.

    Attributes
    ----------
    task : Task
        What is decomposed.
    last : bool
        Whether the fit returns its last factors, as the paper's algorithm does, not its best.
    stop : float
        Relative change of the loss between two looks at which the fit ends; 0 never ends it.
    samples : bool
        Whether the solver samples entries, and their number is limited.
    """

    task: Task
    last: bool = False
    stop: float = 0.0
    samples: bool = True
    snapshots: list[Snapshot] = field(default_factory=list)
    now: Snapshot | None = None
    due: float = 0.0
    paused: float = 0.0
    began: float = field(default_factory=time.process_time)

    def __call__(self, report: Report) -> bool:
        entered = time.process_time()
        seconds, record = entered - self.began - self.paused, report.record
        before = self.now.loss if self.now else math.inf
        loss, factors = self._kept(report)
        if factors is not None:
            self.now = Snapshot(seconds, record.entries, record.epoch, loss, factors)
            if seconds >= self.due:
                self.due = max(seconds, FIRST_SECOND) * SPACING
                self.snapshots.append(self.now)
        settled = abs(before - loss) < self.stop * abs(before)
        self.paused += time.process_time() - entered
        return settled or self.task.is_over(seconds, record.entries if self.samples else 0)

    def _kept(self, report: Report) -> tuple[float, Factors | None]:
        """Return what the fit would return now; nothing while it has too many components."""
        if self.last or report.is_best:
            model = report.model()
            if model.rank == self.task.rank:
                return report.record.loss, model.factors
        return (self.now.loss, self.now.factors) if self.now else (math.inf, None)

    def ended(self, fit: SmartCPD) -> list[Snapshot]:
        """Return all snapshots, the result last."""
        seconds = time.process_time() - self.began - self.paused
        end = fit.history_[-1]
        final = Snapshot(seconds, end.entries, end.epoch, fit.loss_, fit.factors_)
        if self.last and self.now is not None:
            seconds, final = self.now.time, self.now
        return [s for s in self.snapshots if s.time < seconds] + [final]


def ours(
    name: str,
    settings: str,
    parameters: Parameters = lambda task: {},
    *,
    last: bool = False,
    stop: float = 0.0,
    samples: bool = False,
    **flags: Any,
) -> Contender:
    """Make a contender from a fit of this package; `Watch` explains the flags."""

    def run(task: Task) -> list[Snapshot]:
        watch = Watch(task, last, stop, samples)
        fit = SmartCPD(
            task.rank,
            task.loss,
            constraint=task.constraint,
            random_state=task.seed,
            n_threads=1,
            callback=watch,
            progress=False,
            **parameters(task),
        ).fit(task.X)
        if fit.status_.interrupted:
            # What an interrupted fit has found is no result to compare.
            raise KeyboardInterrupt
        return watch.ended(fit)

    return Contender(name, settings, run, **flags)
