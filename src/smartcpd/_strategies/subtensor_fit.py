"""A fit to some rows of every mode, extended to all of them.

A tensor made of some rows of every mode is small enough to be fitted from scratch. What it says of
those rows is extended to all of them, a mode at a time: the model is then good nearly everywhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._common.stacked import stack
from smartcpd._data.storage import DenseStorage
from smartcpd._methods.base import Epoch, Settings
from smartcpd._methods.quasi_newton import Region
from smartcpd._methods.tracker import EndedError, Tracker
from smartcpd._problem.history import Record
from smartcpd._problem.problem import Problem
from smartcpd._strategies.dense import DenseSearch
from smartcpd._strategies.subtensor import Extension, Subtensor

PART_CELLS = 1 << 20
"""Number of cells of the part that is fitted from scratch, unless components need more."""


class SubtensorFit:
    """The first leg of a fit that reads as little of a tensor as it can."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        tracker: Tracker,
        region: Region,
        rng: np.random.Generator,
    ) -> None:
        self.storage = problem.stored_as(DenseStorage)
        self.problem = problem
        self.settings = settings
        self.tracker = tracker
        self.region = region
        self.rng = rng

    def extended(self) -> np.ndarray:
        """Stacked factors of all rows."""
        part = Subtensor.of(self.storage, self.problem.rank, PART_CELLS, self.rng)
        extension = Extension(self.problem, part, self.tracker, self.region, self.rng)
        factors = self.tracker.stage(lambda: self._fit_to(extension))
        return self.tracker.stage(lambda: extension.to_all_rows(factors))

    def _fit_to(self, extension: Extension) -> list[np.ndarray]:
        part = extension.part
        storage = self.storage.gathered(part.rows, self.problem.loss, self.tracker.check_time)
        problem = replace(self.problem, storage=storage)

        def observe(report: Epoch) -> object:
            """Show the user the rows of the history; a model of the part would have another
            shape.
            """
            record = named(report.record)
            whole = Epoch(record, lambda: extension.filled(report.factors()), report.is_best)
            return self.tracker.observe(whole)

        def named(record: Record) -> Record:
            return record._replace(phase=f"{part.name}: {record.phase}")

        fit = DenseSearch(problem, self._hasty(), self.rng, observe)
        fit.tracker.spent = self.tracker.elapsed
        result = fit.from_scratch()
        self.tracker.history.extend(named(row) for row in result.history)
        self.tracker.entries += fit.tracker.entries
        self.tracker.epoch += fit.tracker.epoch
        whole = stack(extension.filled(result.factors))
        self.tracker.begin_with(np.clip(whole, self.region.low, self.region.high))
        if result.ended:
            # Whatever ended the inner fit ended this one, which may then be resumed.
            self.tracker.ended = True
            self.tracker.stopped = self.tracker.stopped or fit.tracker.stopped
            raise EndedError(result.status)
        return result.factors

    def _hasty(self) -> Settings:
        """Return hasty settings, since the part need not be fitted better than it represents the
        whole.
        """
        stopping = replace(self.settings.stopping, tol=100 * self.settings.stopping.tol)
        return replace(self.settings, stopping=stopping)
