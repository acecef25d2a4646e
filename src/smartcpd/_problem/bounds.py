"""Bounds on single entries, the only constraints that some solvers know."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._problem.problem import Problem
from smartcpd.constraints import Constraint, EntryBounds
from smartcpd.errors import IncompatibleError


def are_bounds(problem: Problem) -> bool:
    """Whether every constraint bounds entries one by one."""
    return all(_bounds_entries(c) for c in problem.constraints)


def check_bounds(problem: Problem, solver: str) -> None:
    for mode, constraint in enumerate(problem.constraints):
        if not _bounds_entries(constraint):
            raise IncompatibleError(
                f"Solver '{solver}' knows bounds on single entries only (free, nonnegative, box); "
                f"got constraint '{constraint}' for mode {mode}. Use solver='smd'."
            )


def are_smooth(problem: Problem) -> bool:
    """Whether every constraint bounds entries one by one, with a smooth penalty at most."""
    return all(_ends_of(c) is not None for c in problem.constraints)


def check_smooth(problem: Problem, solver: str) -> None:
    """Refuse penalties that are not smooth, and constraints on whole columns."""
    for mode, constraint in enumerate(problem.constraints):
        if _ends_of(constraint) is None:
            raise IncompatibleError(
                f"Solver '{solver}' knows bounds on single entries (free, nonnegative, box) and "
                f"smooth penalties within them (ridge, smoothness, sparsity of nonnegative "
                f"entries); got constraint '{constraint}' for mode {mode}. Use solver='smd' or "
                "'md'."
            )


def bounds(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of the entries of the stacked factors.

    Both are single columns where all entries of a row have the same bounds.
    """
    width = problem.rank if problem.has_entry_bounds else 1
    pairs = [
        _ends(c, size, width) for c, size in zip(problem.constraints, problem.shape, strict=True)
    ]
    low, high = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return low, high


def _bounds_entries(constraint: Constraint) -> bool:
    return isinstance(constraint, EntryBounds) or constraint.bounds is not None


def _ends_of(constraint: Constraint) -> tuple[Any, Any] | None:
    """The bounds of entries, one pair for all or one for each."""
    if isinstance(constraint, EntryBounds):
        return constraint.low, constraint.high
    return constraint.smooth_within


def _ends(constraint: Constraint, size: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    ends = _ends_of(constraint)
    assert ends is not None
    if isinstance(constraint, EntryBounds):
        return ends
    low, high = (np.full((size, width), float(end)) for end in ends)
    return low, high
