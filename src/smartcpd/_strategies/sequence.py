"""A sequence of fits that hand over to one another, and look like one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from smartcpd._methods.base import Epoch, Observer, Result, Settings, Solver, Task
from smartcpd._problem.history import History, Record
from smartcpd._problem.problem import Problem


@dataclass
class Relay:
    """Adds up the history of the legs so far, and what is left of the user's limits."""

    settings: Settings
    observe: Observer
    history: History = field(default_factory=History)
    last: Record | None = None
    """The last row of the fits so far, whether it was kept or not."""

    @classmethod
    def after(cls, settings: Settings, observe: Observer, history: History) -> Relay:
        """Make a relay that goes on after a fit that is over."""
        return cls(settings, observe, History(history), history[-1] if history else None)

    def run(
        self,
        solver: Solver,
        problem: Problem,
        start: list[np.ndarray],
        rng: np.random.Generator,
        *,
        given_start: bool,
        most_epochs: int | None = None,
        prefix: str = "",
        comparable: bool = True,
    ) -> Result:
        """Run another leg; the result has the history of all whose losses are ``comparable``."""
        before = self.last
        stopping = self.settings.stopping
        if before is not None:
            stopping = replace(stopping, max_epochs=max(1, stopping.max_epochs - before.epoch))
            if stopping.max_time is not None:
                left = max(1e-3, stopping.max_time - before.time)
                stopping = replace(stopping, max_time=left)
        if most_epochs is not None:
            stopping = replace(stopping, max_epochs=min(stopping.max_epochs, most_epochs))

        def joined(record: Record) -> Record:
            if before is not None:
                record = record._replace(
                    time=before.time + record.time,
                    epoch=before.epoch + record.epoch,
                    entries=before.entries + record.entries,
                )
            return record._replace(phase=prefix + record.phase)

        def observe(report: Epoch) -> object:
            return comparable and self.observe(replace(report, record=joined(report.record)))

        settings = replace(self.settings, stopping=stopping, given_start=given_start)
        result = solver.run(Task(problem, settings, start, rng, observe))
        rows = [joined(record) for record in result.history]
        self.last = rows[-1] if rows else before
        if comparable:
            self.history.extend(rows)
        return replace(result, history=self.history)
