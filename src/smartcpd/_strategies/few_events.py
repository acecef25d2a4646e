"""The fit of counts or events in a dense array that is nearly empty, by its nonzeros alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._methods import expected_counts
from smartcpd._methods.base import Result
from smartcpd._methods.dense_descent import quasi_newton
from smartcpd._methods.expected_counts import serves
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.dense_starts import FEW_EVENTS, events_a_parameter
from smartcpd._strategies.sparse import sparse
from smartcpd.errors import IncompatibleError


def suits(problem: Problem) -> bool:
    """Whether there are so few events that the data is better described by them alone."""
    # Missing cells, and cells with weights of their own, would have to be stored like events.
    return (
        serves(problem)
        and not problem.storage.weighted
        and 0 < events_a_parameter(problem) < FEW_EVENTS
    )


def _run(search: Search) -> Result:
    """Fit the nonzeros of a dense array as sparse data."""
    problem = search.problem
    assert isinstance(problem.storage, Dense)
    X, weights = problem.storage.array, problem.storage.weights
    if weights is None:
        where = np.nonzero(X)
        nonzeros = SparseTensor(np.stack(where, axis=1), X[where], X.shape)
    else:
        heaviest = weights.dtype.type(weights.max())
        where = np.nonzero(((X != 0) | (weights != heaviest)) & (weights != 0))
        nonzeros = SparseTensor(
            where, X[where], X.shape, "zero", weights[where] / heaviest, np.nonzero(weights == 0)
        )
    return sparse.run(replace(search, problem=replace(problem, storage=nonzeros)))


def _is_empty(storage: Dense) -> bool:
    return not any(
        np.any(slab if seen is None else slab[seen]) for _, slab, seen in storage.observed_slabs()
    )


def check(problem: Problem) -> None:
    expected_counts.check(problem)
    if not isinstance(problem.storage, Dense) or _is_empty(problem.storage):
        raise IncompatibleError(
            f"Solver 'few-events' takes the nonzeros of a dense array; got {problem}. "
            "Use solver='sparse' for sparse data."
        )


few_events = Strategy("few-events", _run, lambda problem: quasi_newton, check, compares_starts=True)
