"""The fit of counts or events in a dense array that is nearly empty, by its nonzeros alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._data.storage import Dense
from smartcpd._data.storage.conversion import as_sparse
from smartcpd._methods import expected_counts
from smartcpd._methods.base import Result
from smartcpd._methods.dense_descent import finish_of
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


def may_collapse(problem: Problem) -> bool:
    """Whether descents may end at a model of 0, from which multiplicative updates keep away."""
    storage = problem.storage
    if not (serves(problem) and problem.loss.collapses):
        return False
    nonzeros = sum(int(np.count_nonzero(values)) for values in storage.observed_values())
    return 0 < nonzeros < 0.5 * (storage.n_cells - storage.n_missing)


def _run(search: Search) -> Result:
    """Fit the nonzeros of a dense array as sparse data."""
    problem = search.problem
    storage = problem.stored_as(Dense)
    nonzeros = as_sparse(storage, storage.heaviest)
    return sparse.run(replace(search, problem=replace(problem, storage=nonzeros)))


def check(problem: Problem) -> None:
    expected_counts.check(problem)
    storage = problem.storage
    if storage.absent != "none" or not any(np.any(values) for values in storage.observed_values()):
        raise IncompatibleError(
            f"Solver 'few-events' takes the nonzeros of a dense array; got {problem}. "
            "Use solver='sparse' for sparse data."
        )


few_events = Strategy("few-events", _run, finish_of, check, compares_starts=True)
