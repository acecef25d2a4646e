"""Hierarchical alternating least squares (Cichocki and Phan): one column after another.

The quadratic of a factor is one of a single column, too, with the same curvature for all of its
entries. Its minimiser within any constraint is therefore a projection of the free one: the
constraint's own, which is exact. One visit to every column is a visit to the factor.
"""

from __future__ import annotations

import numpy as np

from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.least_squares import Quadratic, alternate_squares, check_loss
from smartcpd._problem.problem import Problem

ROUNDS = 1
"""Visits to every column while a factor is updated, as in the paper of Cichocki and Phan."""


def check(problem: Problem) -> None:
    check_loss(problem, "hals")


def by_columns(quadratic: Quadratic, rounds: int = ROUNDS) -> np.ndarray:
    """The factor after its columns were minimised one after another."""
    V, new, slope = quadratic.V, quadratic.A.copy(), quadratic.slope.copy()
    # A column does not matter where another factor of its component is zero.
    for r in np.tile(np.flatnonzero(np.diag(V)), rounds):
        free = new[:, [r]] - slope[:, [r]] / V[r, r]
        # The loss is a mean over n cells, and so is its curvature next to a penalty.
        curvature = np.full_like(free, V[r, r] / quadratic.n)
        column = quadratic.constraint.apply(free, curvature)
        slope += (column - new[:, [r]]) * V[r]
        new[:, [r]] = column
    return new


def _run(task: Task) -> Result:
    return alternate_squares(task, "hals", by_columns)


hals = Method("hals", _run, check, defaults={"loss": "gaussian"})
