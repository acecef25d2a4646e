"""The types of strategies, which go from data to a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcpd._methods.base import Method, Observer, Result, Settings, Task, accept
from smartcpd._problem.problem import Problem


@dataclass(frozen=True)
class Search:
    """The task of a strategy: a problem of which nothing is known yet."""

    problem: Problem
    settings: Settings
    rng: np.random.Generator
    observe: Observer

    def starting_at(self, start: list[np.ndarray]) -> Task:
        """The task of a method that goes on from a start."""
        return Task(self.problem, self.settings, start, self.rng, self.observe)


@dataclass(frozen=True)
class Strategy:
    """A way from data to a model: it finds starts, runs methods and compares what they found.

    ``solver=`` takes one by its name, or as it is.

    Attributes
    ----------
    name : str
        What ``solver=`` and messages call it.
    run : callable (Search) -> Result
        Finds a model of the problem that the search holds.

    Examples
    --------
    >>> from smartcpd import solvers
    >>> strategy = next(s for s in solvers.STRATEGIES if s.name == "partitioned")
    >>> strategy.reads_parts
    True
    """

    name: str
    run: Callable[[Search], Result]
    finish: Callable[[Problem], Method]
    """The method that goes on from a start of the user's, where there is one."""
    check: Callable[[Problem], None] = accept
    """Raises IncompatibleError for a problem that this strategy cannot serve."""
    reads_parts: bool = False
    """Whether it serves data that is read part by part."""
    compares_starts: bool = False
    """Whether a run compares several starts of its own."""
