"""Counts or events in a dense array that is nearly empty: its nonzeros are all that matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd.errors import IncompatibleError
from smartcpd.problem import Problem
from smartcpd.solvers import expected_counts
from smartcpd.solvers.base import Observer, Result, Settings, Solver
from smartcpd.solvers.dense_starts import FEW_EVENTS, events_a_parameter
from smartcpd.solvers.expected_counts import serves
from smartcpd.solvers.online import online
from smartcpd.storage import Dense, SparseTensor


def suits(problem: Problem) -> bool:
    """Whether there are so few events that the data is better described by them alone."""
    return serves(problem) and 0 < events_a_parameter(problem) < FEW_EVENTS


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
