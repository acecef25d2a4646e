"""How far factors are from satisfying the optimality conditions of the constrained problem."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smartcpd._common import factors as factor_algebra
from smartcpd._common.stacked import offsets, stack, unstack
from smartcpd._objectives import objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem

TINY = 1e-300
"""The least length of a step, of curvatures that are out of range."""


def relative_kkt_residual(problem: Problem, A: np.ndarray, n_threads: int = 1) -> float:
    """The largest relative change of a factor under a projected gradient step; 0 at a solution.

    The step has about the length of a Newton step, from the mean curvature of the cells, and the
    components are balanced among the modes first where the constraints allow it. The residual
    therefore depends neither on the units of the data nor on how the scale is shared.
    """
    A = balanced(problem, A)
    objective = objective_of(problem.storage, problem.loss, n_threads)
    _, gradient = objective.gradient(A)
    gradient = problem.shared.mean(gradient)
    return max(
        float(np.linalg.norm(moved)) / size
        for moved, size, _ in projected_steps(
            problem, A, gradient, CellSample(problem).curvature(A)
        )
    )


def balanced(problem: Problem, A: np.ndarray) -> np.ndarray:
    """Components shared evenly among the modes, where the constraints allow it."""
    if not all(c.cone for c in problem.constraints):
        return A
    return stack(factor_algebra.balanced(unstack(A, problem.shape)))


def projected_steps(
    problem: Problem, A: np.ndarray, gradient: np.ndarray, curvature: float
) -> Iterator[tuple[np.ndarray, float, float]]:
    """Yield for each mode how a projected gradient step changes its factor, the norm of that
    factor, and the length of the step.
    """
    starts = offsets(problem.shape)
    for mode, constraint in enumerate(problem.constraints):
        rows = slice(starts[mode], starts[mode + 1])
        size = float(np.linalg.norm(A[rows])) or 1.0
        length = max(size**2 / curvature, TINY)
        moved = constraint.apply(
            A[rows] - length * gradient[rows], np.full_like(A[rows], 1.0 / length)
        )
        yield A[rows] - moved, size, length
