"""Runs of methods and strategies that hand over to one another, and look like one fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from smartcpd._methods.base import Epoch, Method, Observer, Result, Settings
from smartcpd._problem.history import History, Record
from smartcpd._problem.problem import Problem
from smartcpd._problem.stopping import Stopping
from smartcpd._strategies.base import Search, Strategy


@dataclass
class FitSequence:
    """Runs that follow one another: their history adds up, and the user's limits hold for all."""

    settings: Settings
    observe: Observer
    history: History = field(default_factory=History)
    last: Record | None = None
    """The last record of the runs so far, whether their rows were kept or not."""

    @classmethod
    def after(cls, settings: Settings, observe: Observer, history: History) -> FitSequence:
        """Goes on after a fit that is over."""
        return cls(settings, observe, History(history), history[-1] if history else None)

    def run(
        self,
        solver: Strategy | Method,
        problem: Problem,
        rng: np.random.Generator,
        start: list[np.ndarray] | None = None,
        *,
        most_epochs: int | None = None,
        prefix: str = "",
        comparable: bool = True,
    ) -> Result:
        """Run a method from a start, or a strategy from nothing.

        The result has the history of all runs so far whose losses are ``comparable``.
        """
        before = self.last
        settings = replace(self.settings, stopping=self._left(most_epochs))

        def joined(record: Record) -> Record:
            if before is not None:
                record = record._replace(
                    time=before.time + record.time,
                    epoch=before.epoch + record.epoch,
                    entries=before.entries + record.entries,
                )
            return record._replace(phase=prefix + record.phase)

        def observe(epoch: Epoch) -> object:
            return comparable and self.observe(replace(epoch, record=joined(epoch.record)))

        search = Search(problem, settings, rng, observe)
        if isinstance(solver, Strategy):
            result = solver.run(search)
        else:
            assert start is not None, f"method {solver.name!r} improves a start"
            result = solver.run(search.starting_at(start))
        rows = [joined(record) for record in result.history]
        self.last = rows[-1] if rows else before
        if comparable:
            self.history.extend(rows)
        return replace(result, history=self.history)

    def _left(self, most_epochs: int | None) -> Stopping:
        """Return the user's limits less what earlier runs have used."""
        stopping = self.settings.stopping
        if self.last is not None:
            epochs = max(1, stopping.max_epochs - self.last.epoch)
            before = stopping.max_epochs - epochs
            stopping = replace(stopping, max_epochs=epochs, epochs_before=before)
            if stopping.max_time is not None:
                seconds = max(1e-3, stopping.max_time - self.last.time)
                stopping = replace(
                    stopping, max_time=seconds, time_before=stopping.max_time - seconds
                )
        if most_epochs is not None:
            stopping = replace(stopping, max_epochs=min(stopping.max_epochs, most_epochs))
        return stopping
