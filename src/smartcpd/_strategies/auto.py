"""The choice of a solver where the user does not name one."""

from __future__ import annotations

from smartcpd._data.storage import SparseTensor
from smartcpd._data.tiled import Blocks
from smartcpd._methods.base import Result, Settings, Solver, Task
from smartcpd._methods.expected_counts import serves
from smartcpd._methods.mm import mm
from smartcpd._methods.smd import smd
from smartcpd._problem.bounds import are_bounds
from smartcpd._problem.problem import Problem
from smartcpd._strategies.completion import observed
from smartcpd._strategies.dense import core
from smartcpd._strategies.few_events import nonzeros, suits
from smartcpd._strategies.partitioned import finish_of, parts
from smartcpd._strategies.simplex import relaxed
from smartcpd._strategies.simplex import serves as serves_simplex
from smartcpd._strategies.sparse import online
from smartcpd._strategies.subsampled import FULL_PASSES, large
from smartcpd._strategies.tiled import blocks
from smartcpd.partitions.tensor import PartitionedTensor


def choice(problem: Problem, settings: Settings) -> tuple[Solver, str]:
    """Return the solver for a problem, and why it is the one."""
    storage = problem.storage
    if isinstance(storage, Blocks):
        return blocks, "X is larger than the memory it may take"
    if isinstance(storage, PartitionedTensor):
        if settings.given_start:
            return finish_of(problem), "X is read part by part, and the start is yours"
        return parts, "X is larger than max_memory and is read part by part"
    if settings.stochastic:
        return smd, "you chose how stochastic steps are made"
    if isinstance(storage, SparseTensor) and storage.absent == "unobserved":
        if are_bounds(problem):
            return observed, "X is sparse, and only what it stores was observed"
        return smd, "the constraints are more than bounds on single entries"
    if isinstance(storage, SparseTensor):
        if storage.nnz == 0 or not serves(problem):
            return smd, "X is sparse, and its loss or constraint has no multiplicative updates"
        if settings.given_start:
            return mm, "X is sparse counts or events, and the start is yours"
        return online, "X is sparse counts or events"
    if not are_bounds(problem):
        if serves_simplex(problem):
            return relaxed, "X is dense counts or events, with columns on the simplex"
        return smd, "the constraints are more than bounds on single entries"
    if storage.n_cells > FULL_PASSES:
        return large, f"X is dense and has more than {FULL_PASSES} cells"
    if not settings.given_start and suits(problem):
        return nonzeros, "X is dense but has fewer events than three a parameter"
    return core, f"X is dense and has at most {FULL_PASSES} cells"


def _run(task: Task) -> Result:
    """Fit with the solver that suits the problem."""
    solver, _ = choice(task.problem, task.settings)
    return solver.run(task)


auto = Solver("auto", _run, reads_parts=True)
