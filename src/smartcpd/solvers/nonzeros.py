"""Counts or events in a dense array that is nearly empty: its nonzeros are all that matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd.errors import IncompatibleError
from smartcpd.losses import Data
from smartcpd.problem import Problem
from smartcpd.solvers import expected_counts
from smartcpd.solvers.base import Observer, Result, Settings, Solver
from smartcpd.solvers.expected_counts import serves
from smartcpd.solvers.online import online
from smartcpd.storage import Dense, SparseTensor

FEW_EVENTS = 3
"""A parameter."""


def suits(problem: Problem) -> bool:
    """Whether there are so few events that the data is better described by them alone."""
    storage = problem.storage
    if problem.loss.data not in (Data.COUNTS, Data.BINARY) or not serves(problem):
        return False
    return isinstance(storage, Dense) and 0 < storage.n_events() < FEW_EVENTS * problem.freedom


def _run(
    problem: Problem,
    settings: Settings,
    start: list[np.ndarray],
    rng: np.random.Generator,
    observe: Observer,
) -> Result:
    """Fit the nonzeros of a dense array as sparse data."""
    assert isinstance(problem.storage, Dense)
    X = problem.storage.array
    where = np.nonzero(X)
    sparse = SparseTensor(np.stack(where, axis=1), X[where], X.shape)
    return online.run(replace(problem, storage=sparse), settings, start, rng, observe)


def check(problem: Problem) -> None:
    expected_counts.check(problem)
    if not isinstance(problem.storage, Dense) or not problem.storage.array.any():
        raise IncompatibleError(
            f"Solver 'nonzeros' takes the nonzeros of a dense array; got {problem}. "
            "Use solver='online' for sparse data."
        )


nonzeros = Solver("nonzeros", _run, check, compares_starts=True)
