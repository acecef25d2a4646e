"""The choice of a strategy for a problem, and of a method for a start of the user's."""

from __future__ import annotations

from functools import singledispatch

from smartcpd._data.storage import Storage
from smartcpd._data.tiled import TiledArray
from smartcpd._methods.base import Method, Settings
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._problem.bounds import are_smooth
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.in_memory import choice_in_memory
from smartcpd._strategies.partitioned import partitioned
from smartcpd._strategies.tiled import tiled
from smartcpd.partitions.tensor import PartitionedTensor

WHOLE = "known entries, shared factors and penalties need gradients of all of it"


def choice(problem: Problem, settings: Settings) -> tuple[Strategy | Method, str]:
    """The strategy for a problem, or the method where no strategy serves it, and why."""
    return _choice(problem.storage, problem, settings)


@singledispatch
def _choice(
    storage: Storage, problem: Problem, settings: Settings
) -> tuple[Strategy | Method, str]:
    return choice_in_memory(problem, settings)


@_choice.register
def _(storage: TiledArray, problem: Problem, settings: Settings) -> tuple[Strategy | Method, str]:
    if _needs_whole_gradients(problem):
        return lbfgs, f"X is larger than the memory it may take, and {WHOLE}"
    return tiled, "X is larger than the memory it may take"


@_choice.register
def _(
    storage: PartitionedTensor, problem: Problem, settings: Settings
) -> tuple[Strategy | Method, str]:
    if _needs_whole_gradients(problem):
        return lbfgs, f"X is read part by part, and {WHOLE}"
    return partitioned, "X is larger than max_memory and is read part by part"


def _needs_whole_gradients(problem: Problem) -> bool:
    """Whether no strategy serves data of this size, but descents on whole gradients do."""
    special = bool(problem.shared) or problem.has_entry_bounds or problem.penalises
    return special and are_smooth(problem)


def from_a_start(solver: Strategy | Method, reason: str, problem: Problem) -> tuple[Method, str]:
    """The method that goes on from a start of the user's, and why it is the one."""
    if isinstance(solver, Method):
        return solver, reason
    return solver.finish(problem), f"{reason}, and the start is yours"
