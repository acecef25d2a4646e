"""The types that every method takes and returns, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd._problem.history import Finding, History, Record, Status
from smartcpd._problem.problem import Problem
from smartcpd._problem.stopping import Stopping


@dataclass(frozen=True)
class Settings:
    """Everything about a fit that is not the problem itself."""

    stopping: Stopping
    n_fibers: int
    inner_iterations: int
    """Updates of a mode before the next is drawn."""
    averaging: bool
    dtype: str
    n_threads: int
    overcomplete: float = 1.5
    """Components of a random start, relative to the rank."""
    fresh_fibers: bool = False
    """Whether each inner iteration draws fibers of its own."""
    n_init: int = 1
    """Starts to compare, for strategies that do so themselves."""
    effort: float = 1.0
    """The work that a search for better solutions may take, relative to what is usual."""
    stochastic: bool = False
    """Whether the user chose how stochastic steps are made, and so wants them."""
    journal: Journal = field(default_factory=Journal, repr=False)
    """The record of completed stages, with which the fit can go on in another process."""

    def for_full_passes(self) -> Settings:
        return replace(self, stopping=self.stopping.for_full_passes())


@dataclass(frozen=True)
class Epoch:
    """The state of a run that an observer receives after each epoch."""

    record: Record
    factors: Callable[[], list[np.ndarray]]
    """Copies the factors of this row; while several runs compete, not always the best so far."""
    is_best: bool = True
    """Whether these factors are what the fit would return if it ended here."""


@kept_value
class Ended(NamedTuple):
    """The end of a start: its factors, and their loss with penalties."""

    factors: list[np.ndarray]
    objective: float


@kept_value
class Comparison(NamedTuple):
    """The starts that a result was compared with."""

    others: list[Ended]
    """Independent starts that came to their end, without the one that led to the result."""
    own: bool
    """Whether the result comes from a single start, too, and was not bred of several."""
    n_stopped: int
    """The number of starts that were stopped early, of which nothing can be said."""
    settled: bool
    """Whether the starts that came to their end did so because there was nothing left to gain."""


@kept_value
@dataclass(frozen=True)
class Result:
    """The best factors found, how they were found and why the search ended."""

    factors: list[np.ndarray]
    history: History = field(repr=False)
    status: Status
    ended: bool = False
    """Whether the user ended it, by a limit, a callback or an interrupt: nothing should follow."""
    loss: float | None = None
    """The mean loss, if it is known without another pass over data that is not in memory."""
    loss_error: float = 0.0
    """The standard error of that loss, where it comes from a sample of the cells."""
    comparison: Comparison | None = field(default=None, repr=False)
    """The comparison with other starts, where there were several."""
    finding: Finding | None = None
    """The comparison of independent runs, if the search made several."""


Observer = Callable[[Epoch], Any]
"""Called after each epoch; a true answer ends the fit."""


@dataclass(frozen=True)
class Task:
    """The task of a method: a problem, and the start that it is to improve."""

    problem: Problem
    settings: Settings
    start: list[np.ndarray]
    rng: np.random.Generator
    observe: Observer


def accept(problem: Problem) -> None:
    """Serve every problem."""


@dataclass(frozen=True)
class Method:
    """A way from a start to an end, and a check of whether it can serve a problem.

    ``solver=`` takes one by its name, or as it is.

    Attributes
    ----------
    name : str
        What ``solver=`` and messages call it.
    run : callable (Task) -> Result
        Improves the start that the task holds.

    Examples
    --------
    >>> from smartcpd import solvers
    >>> lbfgs = next(method for method in solvers.METHODS if method.name == "lbfgs")
    >>> lbfgs.takes_entry_bounds
    True
    """

    name: str
    run: Callable[[Task], Result]
    check: Callable[[Problem], None] = accept
    """Raises IncompatibleError for a problem that this method cannot serve."""
    reads_parts: bool = False
    """Whether it serves data that is read part by part."""
    takes_entry_bounds: bool = False
    """Whether it serves factors whose entries have bounds of their own, or are known."""
    shares_factors: bool = False
    """Whether it serves modes that have one factor together."""
    takes_sums: bool = False
    """Whether it serves penalties that are added up."""
    defaults: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Parameters of a fit that this method has its own defaults for."""
