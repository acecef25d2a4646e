"""The choice of a strategy for data in memory when the user does not name one."""

from __future__ import annotations

from functools import singledispatch

from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._methods.base import Method, Settings
from smartcpd._methods.dense_descent import quasi_newton
from smartcpd._methods.expected_counts import serves
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.md import md
from smartcpd._methods.mm import mm
from smartcpd._methods.smd import smd
from smartcpd._problem.bounds import are_bounds, are_smooth
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.completion import completion
from smartcpd._strategies.constrained import constrained
from smartcpd._strategies.constrained import suits as suits_constrained
from smartcpd._strategies.dense import dense
from smartcpd._strategies.few_events import few_events, may_collapse, suits
from smartcpd._strategies.simplex import serves as serves_simplex
from smartcpd._strategies.simplex import simplex
from smartcpd._strategies.sparse import sparse
from smartcpd._strategies.subsampled import FULL_PASSES, subsampled


def choice_in_memory(problem: Problem, settings: Settings) -> tuple[Strategy | Method, str]:
    """The strategy for a problem, or the method where no strategy serves it, and why."""
    if settings.stochastic:
        return smd, "you chose how stochastic steps are made"
    special = problem.shared or problem.has_sums or problem.has_entry_bounds
    if problem.penalises and are_smooth(problem) and (special or _has_ridge(problem)):
        return lbfgs, "penalties are smooth within the bounds of entries"
    if problem.shared:
        return quasi_newton, "some modes share a factor"
    if problem.has_entry_bounds and are_bounds(problem):
        return quasi_newton, "some entries of the factors are known, or have bounds of their own"
    if problem.has_sums:
        return md, "penalties are added up, and not all of them are smooth"
    return _choice(problem.storage, problem)


def _has_ridge(problem: Problem) -> bool:
    """Whether a penalty draws all entries towards 0, where stochastic steps end too early."""
    return any(c.is_quadratic and not c.columnwise for c in problem.constraints)


def _within_columns(problem: Problem) -> tuple[Strategy | Method, str]:
    reason = "the constraints are more than bounds on single entries"
    return (constrained if suits_constrained(problem) else smd), reason


@singledispatch
def _choice(storage: Storage, problem: Problem) -> tuple[Strategy | Method, str]:
    raise TypeError(f"{type(storage).__name__} is no storage that is in memory.")


@_choice.register
def _(storage: Dense, problem: Problem) -> tuple[Strategy | Method, str]:
    if not are_bounds(problem):
        if serves_simplex(problem):
            return simplex, "X is dense counts or events, with columns on the simplex"
        return _within_columns(problem)
    if storage.n_cells > FULL_PASSES:
        return subsampled, f"X is dense and has more than {FULL_PASSES} cells"
    if suits(problem):
        return few_events, "X is dense but has fewer events than three a parameter"
    if may_collapse(problem):
        reason = f"X is mostly zeros, and descents under loss '{problem.loss}' may end at 0"
        return (mm if storage.weighted else few_events), reason
    return dense, f"X is dense and has at most {FULL_PASSES} cells"


@_choice.register
def _(storage: SparseTensor, problem: Problem) -> tuple[Strategy | Method, str]:
    if storage.absent == "unobserved":
        if are_bounds(problem):
            return completion, "X is sparse, and only what it stores was observed"
        return _within_columns(problem)
    if storage.nnz == 0:
        return smd, "X is sparse and has no entry"
    if not are_bounds(problem):
        return _within_columns(problem)
    return sparse, "X is sparse counts or events" if serves(problem) else "X is sparse"
