"""The case that the checks look at: a model, its data, and one pass over the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import stack, unstack
from smartcpd._data.labels import Mode
from smartcpd._data.opening import in_memory
from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._inference.diagnosis.tallies import Tallies
from smartcpd._inference.rank_check.verdict import RankVerdict
from smartcpd._objectives.kkt import balanced
from smartcpd._problem.history import History, Status
from smartcpd._problem.problem import Problem
from smartcpd.losses import Loss

NAMED = 5
"""How many rows or components a sentence names; the others are only counted."""


@dataclass(frozen=True, eq=False)
class Case:
    """A model, the data it should describe, and what is known of the fit."""

    model: CPModel
    problem: Problem
    """The problem with the model's rank, loss and constraints."""
    factors: list[np.ndarray]
    """The factors in float64, with the weights in them, as `shared_evenly` gives them."""
    tallies: Tallies
    """The sums of one pass over the cells, or over those of a sample that is always the same."""
    status: Status | None = None
    history: History | None = None
    consensus: Consensus | None = None
    rank: RankVerdict | None = None
    """What other ranks say of held-out cells, where they were compared."""
    in_whole: Callable[[Sequence[int]], Sequence[int]] = tuple
    """Tells where a cell is in the data that the model was fitted to, if this is an excerpt."""

    @property
    def loss(self) -> Loss:
        return self.problem.loss

    @property
    def storage(self) -> Dense | SparseTensor:
        """The data, which is refused unless it is in memory."""
        return in_memory(self.problem.storage, "diagnose")

    def component(self, r: int) -> str:
        """Return what sentences call a component."""
        return str(r + 1)

    def pairs(self, pairs: list[tuple[int, int]]) -> str:
        return listed([f"{self.component(i)} and {self.component(j)}" for i, j in pairs])


def shared_evenly(model: CPModel, problem: Problem) -> list[np.ndarray]:
    """The factors with the weights in them, which are shared evenly where constraints allow it."""
    return unstack(balanced(problem, stack(model.distribute().factors)), problem.shape)


def row_name(mode: Mode, row: int) -> str:
    text = mode.text([row])[0]
    return text if len(text) <= 40 else text[:39] + "…"


def listed(names: list[str], total: int | None = None) -> str:
    """Join names as in "a, b and c"; or list the first few of ``total``."""
    total = len(names) if total is None else total
    if total > NAMED:
        return f"{', '.join(names[:NAMED])} and {total - NAMED:,} more"
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
