"""The fit of a sparse tensor whose stored cells are all that was observed.

Where a tensor is small, or a good part of a larger one is known, it is fitted as a dense array with
missing cells. In others only the observed cells are ever looked at: stochastic steps come close to
a solution, and a quasi-Newton method goes on from there.
"""

from __future__ import annotations

from dataclasses import replace

from smartcpd._data.storage import SparseTensor
from smartcpd._data.storage.conversion import as_dense
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.dense_descent import quasi_newton
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.smd import smd
from smartcpd._problem.bounds import check_bounds
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.dense import dense
from smartcpd._strategies.sequence import FitSequence
from smartcpd._strategies.starts import make_start
from smartcpd._strategies.subsampled import FULL_PASSES
from smartcpd.errors import IncompatibleError

DENSE_SHARE = 0.03
"""The share of observed cells from which on it pays to pass over all cells."""
SMALL = 1 << 20
"""Number of cells up to which passes over all of them cost so little that it always pays."""


def check(problem: Problem) -> None:
    """Refuse what was observed as a whole."""
    check_bounds(problem, "completion")
    if problem.storage.absent != "unobserved":
        raise IncompatibleError(
            "Solver 'completion' takes sparse data whose absent cells were not observed; got "
            f"{problem}. Use solver='auto'."
        )


def as_dense_problem(problem: Problem) -> Problem | None:
    """The problem on a dense array with missing cells; None where too little was observed."""
    storage = problem.stored_as(SparseTensor)
    worth = storage.n_cells <= SMALL or storage.nnz >= DENSE_SHARE * storage.n_cells
    if storage.n_cells > FULL_PASSES or not worth:
        return None
    return replace(problem, storage=as_dense(storage))


def _run(search: Search) -> Result:
    problem, settings, rng = search.problem, search.settings, search.rng
    whole = as_dense_problem(problem)
    if whole is not None:
        return dense.run(replace(search, problem=whole))
    sequence = FitSequence(settings, search.observe)
    start = make_start(problem, "random", settings.overcomplete, rng)
    result = sequence.run(smd, problem, rng, start)
    return result if result.ended else sequence.run(lbfgs, problem, rng, result.factors)


def _run_from(task: Task) -> Result:
    whole = as_dense_problem(task.problem)
    return lbfgs.run(task) if whole is None else quasi_newton.run(replace(task, problem=whole))


_finish = Method("completion", _run_from, check)
completion = Strategy("completion", _run, lambda problem: _finish, check)
