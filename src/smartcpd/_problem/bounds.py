"""Bounds on single entries, the only constraints that some solvers know."""

from __future__ import annotations

import numpy as np

from smartcpd._problem.problem import Problem
from smartcpd.constraints import Constraint
from smartcpd.constraints.box import Box
from smartcpd.constraints.free import Free
from smartcpd.constraints.nonnegative import Nonnegative
from smartcpd.errors import IncompatibleError


def bounds_of(constraint: Constraint) -> tuple[float, float] | None:
    """The bounds of single entries, if a constraint is nothing else."""
    if isinstance(constraint, Box):
        return constraint.lo, constraint.hi
    ends = {Free: (-np.inf, np.inf), Nonnegative: (0.0, np.inf)}
    return ends.get(type(constraint))


def are_bounds(problem: Problem) -> bool:
    """Whether every constraint bounds entries one by one."""
    return all(bounds_of(c) is not None for c in problem.constraints)


def check_bounds(problem: Problem, solver: str) -> None:
    for mode, constraint in enumerate(problem.constraints):
        if bounds_of(constraint) is None:
            raise IncompatibleError(
                f"Solver '{solver}' knows bounds on single entries only (free, nonnegative, box); "
                f"got constraint '{constraint}' for mode {mode}. Use solver='smd'."
            )


def bounds(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest value of every row of the stacked factors, as columns."""
    pairs = [bounds_of(c) for c in problem.constraints]
    low, high = np.repeat(np.array(pairs, dtype=np.float64), problem.shape, axis=0).T
    return low[:, None].copy(), high[:, None].copy()
