"""The case that the checks look at: a model, its data, and one pass over the cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smartcpd._common.stacked import stack, unstack
from smartcpd._data.labels import Mode
from smartcpd._data.opening import in_memory
from smartcpd._data.storage import InMemory
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._inference.diagnosis.tallies import Tallies
from smartcpd._objectives.kkt import balanced
from smartcpd._problem.history import History, Status
from smartcpd._problem.problem import Problem
from smartcpd.losses import Loss
from smartcpd.quality.reading import reading_of

NAMED = 5
"""How many rows or components a sentence names; the others are only counted."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model, the data it should describe, and what is known of the fit."""

    model: CPModel
    problem: Problem
    """The problem with the model's rank, loss and constraints."""
    status: Status | None = None
    history: History | None = None
    consensus: Consensus | None = None
    first: int = 0
    """The number that sentences give the first component."""

    @property
    def loss(self) -> Loss:
        return self.problem.loss

    @property
    def storage(self) -> InMemory:
        """The data, which is refused unless it is in memory."""
        return in_memory(self.problem.storage, "diagnose")

    @cached_property
    def factors(self) -> list[np.ndarray]:
        """The factors in float64, with the weights in them, shared evenly where constraints allow
        it.
        """
        A = stack(self.model.distribute().factors)
        return unstack(balanced(self.problem, A), self.problem.shape)

    @cached_property
    def tallies(self) -> Tallies:
        """The sums of one pass over the cells, or over those of a sample that is always the
        same.
        """
        reading = reading_of(self.storage, self.factors, self.loss, seed=0)
        tallies = Tallies(reading)
        for batch in reading.batches():
            tallies.add(batch)
        return tallies

    def component(self, r: int) -> str:
        """Return what sentences call a component."""
        return str(r + self.first)

    def pairs(self, pairs: list[tuple[int, int]]) -> str:
        return listed([f"{self.component(i)} and {self.component(j)}" for i, j in pairs])


def row_name(mode: Mode, row: int) -> str:
    text = Mode(mode.name, mode.labels[row : row + 1], mode.kind).text()[0]
    return text if len(text) <= 40 else text[:39] + "…"


def listed(names: list[str], total: int | None = None) -> str:
    """Join names as in "a, b and c"; or list the first few of ``total``."""
    total = len(names) if total is None else total
    if total > NAMED:
        return f"{', '.join(names[:NAMED])} and {total - NAMED:,} more"
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
