"""How far factors are from satisfying the optimality conditions of the constrained problem."""

from __future__ import annotations

import numpy as np

from smartcpd.model import CPModel
from smartcpd.objectives import objective_of
from smartcpd.problem import Problem
from smartcpd.sample import CellSample
from smartcpd.stack import offsets, stack, unstack


def relative_kkt_residual(problem: Problem, A: np.ndarray, n_threads: int = 1) -> float:
    """The largest relative change of a factor under a projected gradient step; 0 at a solution.

    The step has about the length of a Newton step, from the mean curvature of the cells, and the
    components are balanced among the modes first where the constraints allow it. The residual
    therefore depends neither on the units of the data nor on how the scale is shared.
    """
    A = balanced(problem, A)
    objective = objective_of(problem.storage, problem.loss, n_threads)
    _, gradient = objective.gradient(A)
    changes = relative_changes(problem, A, gradient, CellSample(problem).curvature(A))
    return max(change for change, _ in changes)


def balanced(problem: Problem, A: np.ndarray) -> np.ndarray:
    """Components shared evenly among the modes, where the constraints allow it."""
    if not all(c.cone for c in problem.constraints):
        return A
    return stack(CPModel(unstack(A, problem.shape)).normalize().distribute().factors)


def relative_changes(
    problem: Problem, A: np.ndarray, gradient: np.ndarray, curvature: float
) -> list[tuple[float, float]]:
    """For each mode, the relative change of its factor under a projected gradient step, and what
    that would be for a gradient of norm 1 without the projection."""
    starts = offsets(problem.shape)
    changes = []
    for mode, constraint in enumerate(problem.constraints):
        rows = slice(starts[mode], starts[mode + 1])
        size = float(np.linalg.norm(A[rows])) or 1.0
        length = size**2 / curvature
        moved = constraint.apply(
            A[rows] - length * gradient[rows], np.full_like(A[rows], 1.0 / length)
        )
        changes.append((float(np.linalg.norm(A[rows] - moved)) / size, length / size))
    return changes
