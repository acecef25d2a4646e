"""How far factors are from satisfying the optimality conditions of the constrained problem."""

from __future__ import annotations

import numpy as np

from smartcpd.objective import Objective
from smartcpd.problem import Problem
from smartcpd.sample import CellSample
from smartcpd.stack import offsets


def relative_kkt_residual(problem: Problem, A: np.ndarray, n_threads: int = 1) -> float:
    """The largest relative change of a factor under a projected gradient step; 0 at a solution.

    The step has the length at which a gradient as large as the cells' own, if they all agreed,
    would change the factor by its own size. The residual therefore does not depend on the units of
    the data or on how the scale is shared among the modes.
    """
    objective = Objective(problem.storage, problem.loss, n_threads)
    _, gradient = objective.gradient(A)
    starts = offsets(problem.shape)
    unit = CellSample(problem).derivative_scale(A)
    worst = 0.0
    for mode, constraint in enumerate(problem.constraints):
        rows = slice(starts[mode], starts[mode + 1])
        size = float(np.linalg.norm(A[rows])) or 1.0
        length = size**2 / unit
        moved = constraint.apply(
            A[rows] - length * gradient[rows], np.full_like(A[rows], 1.0 / length)
        )
        worst = max(worst, float(np.linalg.norm(A[rows] - moved)) / size)
    return worst
