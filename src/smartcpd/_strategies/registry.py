"""Strategies and methods by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smartcpd._methods.als import als
from smartcpd._methods.ao_admm import ao_admm
from smartcpd._methods.base import Method
from smartcpd._methods.dense_descent import quasi_newton
from smartcpd._methods.gcp_adam import gcp_adam
from smartcpd._methods.ggn import ggn
from smartcpd._methods.growing_samples import growing_samples
from smartcpd._methods.hals import hals
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.md import md
from smartcpd._methods.mm import mm
from smartcpd._methods.newton_sweeps import row_newton
from smartcpd._methods.smd import smd
from smartcpd._methods.stochastic_squares import adacpd, brascpd
from smartcpd._methods.tile_descents import tile_descents
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.completion import completion
from smartcpd._strategies.constrained import constrained
from smartcpd._strategies.dense import dense
from smartcpd._strategies.few_events import few_events
from smartcpd._strategies.partitioned import partitioned
from smartcpd._strategies.simplex import simplex
from smartcpd._strategies.sparse import sparse
from smartcpd._strategies.subsampled import subsampled
from smartcpd._strategies.tiled import tiled
from smartcpd.errors import IncompatibleError, InvalidParameterError

AUTO = "auto"
STRATEGIES: tuple[Strategy, ...] = (
    dense,
    sparse,
    completion,
    few_events,
    simplex,
    constrained,
    subsampled,
    tiled,
    partitioned,
)
"""The strategies, which go from data to a model: they find starts, run methods and compare."""
METHODS: tuple[Method, ...] = (
    smd,
    brascpd,
    adacpd,
    mm,
    md,
    als,
    hals,
    ao_admm,
    row_newton,
    lbfgs,
    ggn,
    gcp_adam,
    quasi_newton,
    growing_samples,
    tile_descents,
)
"""The methods, each of which improves one start: the user's, or a random one."""
_BY_NAME: dict[str, Strategy | Method] = {s.name: s for s in STRATEGIES} | {
    m.name: m for m in METHODS
}


def names() -> list[str]:
    """Return all names that ``solver=`` may have.

    Returns
    -------
    list of str
        "auto" first, then strategies, then methods.

    Examples
    --------
    >>> from smartcpd import solvers
    >>> solvers.names()[:3]
    ['auto', 'dense', 'sparse']
    """
    return [AUTO, *_BY_NAME]


def get(solver: str | Strategy | Method) -> Strategy | Method | None:
    """The strategy or method of a name, None for "auto"; one with settings of its own is taken as
    it is."""
    if isinstance(solver, Strategy | Method):
        return solver
    if solver == AUTO:
        return None
    if solver not in _BY_NAME:
        raise InvalidParameterError(f"Unknown solver {solver!r}. Names: {', '.join(names())}.")
    return _BY_NAME[solver]


def own_defaults(
    solver: Strategy | Method | None, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters that a solver changes, being ``given`` nothing but what is ``usual``."""
    defaults = solver.defaults if isinstance(solver, Method) else {}
    return {
        name: value
        for name, value in defaults.items()
        if value != usual[name] and given.get(name, usual[name]) == usual[name]
    }


def check(solver: Strategy | Method, problem: Problem) -> None:
    """Refuse a problem that a solver cannot serve, or that does not fit in memory."""
    check_parts(solver, problem)
    if problem.has_entry_bounds and not (isinstance(solver, Method) and solver.takes_entry_bounds):
        able = ", ".join(repr(each.name) for each in METHODS if each.takes_entry_bounds)
        raise IncompatibleError(
            f"Solver '{solver.name}' cannot leave single entries of a factor alone; got {problem}. "
            f"Known entries, and bounds that are arrays, are served by {able}, for constraints "
            "that are bounds in all modes."
        )
    if problem.shared and not (isinstance(solver, Method) and solver.shares_factors):
        able = ", ".join(repr(each.name) for each in METHODS if each.shares_factors)
        raise IncompatibleError(
            f"Solver '{solver.name}' moves the factor of one mode at a time, or merges components, "
            f"and cannot keep one factor for several modes; got {problem}. Use solver='auto', or "
            f"one of {able}, with constraints that are bounds on single entries."
        )
    if problem.has_sums and not (isinstance(solver, Method) and solver.takes_sums):
        able = ", ".join(repr(each.name) for each in METHODS if each.takes_sums)
        raise IncompatibleError(
            f"Solver '{solver.name}' needs constraints whose projections are compiled, and those "
            f"of sums of penalties are not; got {problem}. Use solver='auto', or one of {able}."
        )
    solver.check(problem)


def check_parts(solver: Strategy | Method, problem: Problem) -> None:
    """Refuse data in parts where a solver needs it whole, or where not even a part has room."""
    needs = problem.storage.fit_needs(problem.rank)
    if needs is None:
        return
    if not solver.reads_parts:
        able = ", ".join(repr(name) for name, each in _BY_NAME.items() if each.reads_parts)
        raise needs.refusal(f"solver '{solver.name}'", able)
    needs.check()
