"""The parts of a race: a task goes in, what a solver had at which second comes out.

The factors that a solver has on its way are kept as they are, and judged after it has ended: no
error of the factors, and no loss that only the figure needs, is on its clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from smartcpd._data.storage import SparseTensor

Factors = list[np.ndarray]


@dataclass(frozen=True)
class Budget:
    """What a solver may spend on a trial; it ends at whichever comes first, or by its own
    criterion.

    Attributes
    ----------
    seconds : float
        Seconds of the processor.
    epochs : float, optional
        Entries that solvers which sample may read, counted in the paper's epochs: as many as the
        tensor has.
    """

    seconds: float
    epochs: float | None = None

    def words(self) -> str:
        """Return the budget as a table of settings shows it."""
        sampled = f" or {self.epochs:g} epochs of sampled entries" if self.epochs else ""
        return f"{self.seconds:g} s{sampled}"


@dataclass(frozen=True)
class Task:
    """A data set to be decomposed, and what may be spent on it."""

    X: np.ndarray | SparseTensor
    rank: int
    loss: str
    truth: Factors | None = None
    constraint: str = "auto"
    n_fibers: int | None = None
    """Fibers that an iteration of stochastic mirror descent reads; twice the rank by default."""
    start: Factors | None = None
    """The factors from which all solvers as published begin: the paper's start."""
    seed: int = 0
    budget: Budget = Budget(60.0)

    @property
    def n_cells(self) -> int:
        return int(np.prod(self.X.shape, dtype=np.int64))

    @property
    def is_dense(self) -> bool:
        return isinstance(self.X, np.ndarray)

    @property
    def n_entries(self) -> int:
        """Number of entries that an iteration of the paper's method reads; rivals that sample get
        as many.
        """
        return (self.n_fibers or 2 * self.rank) * max(self.X.shape)

    @property
    def kind(self) -> tuple[object, ...]:
        """What code that is compiled for this task depends on."""
        dtype = self.X.dtype if isinstance(self.X, np.ndarray) else self.X.values.dtype
        return (self.loss, self.rank, self.constraint, self.X.ndim, dtype)

    def is_over(self, seconds: float, entries: float) -> bool:
        """Tell whether a solver that has spent so much, and sampled so many entries, must end."""
        epochs = self.budget.epochs
        return seconds >= self.budget.seconds or (
            epochs is not None and entries >= epochs * self.n_cells
        )


@dataclass(frozen=True)
class Snapshot:
    """The result that a solver had after some seconds; a peer may tell the loss but not the
    factors.
    """

    time: float
    entries: float
    epoch: int
    loss: float
    factors: Factors | None


@dataclass(frozen=True)
class Contender:
    """A solver with settings, which is a line of a figure.

    Attributes
    ----------
    name : str
        The name in the figure.
    settings : str
        What was set, for the table; runs with other settings are not mixed with these.
    run : callable
        Takes a task, returns snapshots, the last of which is the result.
    reference : bool
        Whether it is a limit to compare with, not a competitor.
    warm_up_seconds : float
        Seconds after which a run has compiled all that it needs; 0 if it compiles nothing.
    """

    name: str
    settings: str
    run: Callable[[Task], list[Snapshot]]
    reference: bool = False
    warm_up_seconds: float = 0.02

    def warm_up(self, task: Task) -> None:
        """Compile what a run needs."""
        if self.warm_up_seconds:
            self.run(replace(task, budget=Budget(self.warm_up_seconds)))
