"""The fit of a sparse tensor whose stored cells are all that was observed.

Where a good part of a small tensor is known, it is fitted as a dense array with missing cells. In
others only the observed cells are ever looked at: stochastic steps come close to a solution, and a
quasi-Newton method goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._methods.base import Result, Solver, Task
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.smd import smd
from smartcpd._problem.bounds import check_bounds
from smartcpd._problem.problem import Problem
from smartcpd._strategies.dense import core
from smartcpd._strategies.sequence import Relay
from smartcpd._strategies.subsampled import FULL_PASSES
from smartcpd.errors import IncompatibleError

DENSE_SHARE = 0.03
"""The share of observed cells from which on it pays to pass over all cells."""


def check(problem: Problem) -> None:
    check_bounds(problem, "observed")
    if not isinstance(problem.storage, SparseTensor) or problem.storage.absent != "unobserved":
        raise IncompatibleError(
            "Solver 'observed' takes sparse data whose absent cells were not observed; got "
            f"{problem}. Use solver='auto'."
        )


def as_dense(storage: SparseTensor) -> Dense:
    """Return the observed cells in an array that has room for all of them."""
    array = np.ones(storage.shape, storage.values.dtype)
    array[storage.indices] = storage.values
    weights = np.zeros(storage.shape, bool if storage.weights is None else np.float64)
    weights[storage.indices] = True if storage.weights is None else storage.weights
    return Dense(array, weights)


def _run(task: Task) -> Result:
    problem, start, rng = task.problem, task.start, task.rng
    storage = problem.storage
    assert isinstance(storage, SparseTensor)
    if storage.n_cells <= FULL_PASSES and storage.nnz >= DENSE_SHARE * storage.n_cells:
        whole = replace(problem, storage=as_dense(storage))
        return core.run(replace(task, problem=whole))
    relay = Relay(task.settings, task.observe)
    if not task.settings.given_start:
        result = relay.run(smd, problem, start, rng, given_start=False)
        if result.ended:
            return result
        start = result.factors
    return relay.run(lbfgs, problem, start, rng, given_start=True)


observed = Solver("observed", _run, check)
