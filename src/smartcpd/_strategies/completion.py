"""Cells that were observed, of a sparse tensor of which the others were not.

Where a good part of a small tensor is known, it is fitted as a dense array with missing cells. Of
others only the observed cells are ever looked at: stochastic steps come close to a solution, and a
quasi-Newton method goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

from smartcpd._data.storage import SparseTensor
from smartcpd._data.storage.conversion import as_dense
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
"""Of the cells that were observed, from which on it pays to pass over all of them."""


def check(problem: Problem) -> None:
    check_bounds(problem, "observed")
    if not isinstance(problem.storage, SparseTensor) or problem.storage.absent != "unobserved":
        raise IncompatibleError(
            "Solver 'observed' takes sparse data whose absent cells were not observed; got "
            f"{problem}. Use solver='auto'."
        )


def _run(task: Task) -> Result:
    problem, start, rng = task.problem, task.start, task.rng
    storage = problem.stored_as(SparseTensor)
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
