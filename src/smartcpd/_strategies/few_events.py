"""Counts or events in a dense array that is nearly empty: its nonzeros are all that matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._data.storage import Dense
from smartcpd._data.storage.conversion import as_sparse
from smartcpd._methods import expected_counts
from smartcpd._methods.base import Result, Solver, Task
from smartcpd._methods.expected_counts import serves
from smartcpd._problem.problem import Problem
from smartcpd._strategies.dense_starts import FEW_EVENTS, events_a_parameter
from smartcpd._strategies.sparse import online
from smartcpd.errors import IncompatibleError


def suits(problem: Problem) -> bool:
    """Whether there are so few events that the data is better described by them alone."""
    # Cells that are missing, or that have weights of their own, would be as good as events.
    return (
        serves(problem)
        and not problem.storage.weighted
        and 0 < events_a_parameter(problem) < FEW_EVENTS
    )


def _run(task: Task) -> Result:
    """Fit the nonzeros of a dense array as sparse data."""
    problem = task.problem
    storage = problem.stored_as(Dense)
    sparse = as_sparse(storage, storage.heaviest)
    return online.run(replace(task, problem=replace(problem, storage=sparse)))


def _is_empty(storage: Dense) -> bool:
    return not any(
        np.any(slab if seen is None else slab[seen]) for _, slab, seen in storage.observed_slabs()
    )


def check(problem: Problem) -> None:
    expected_counts.check(problem)
    if not isinstance(problem.storage, Dense) or _is_empty(problem.storage):
        raise IncompatibleError(
            f"Solver 'nonzeros' takes the nonzeros of a dense array; got {problem}. "
            "Use solver='online' for sparse data."
        )


nonzeros = Solver("nonzeros", _run, check, compares_starts=True)
