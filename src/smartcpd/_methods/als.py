"""Alternating least squares: each factor in turn by the normal equations of its mode.

The minimiser of a factor's quadratic is A - n G V⁻¹: the usual MTTKRP · V⁻¹, but written as a step
from A, so that neither a nearly singular V nor what is added to its diagonal moves the fixed
points.
"""

from __future__ import annotations

import numpy as np

from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.least_squares import Quadratic, alternate_squares, check_loss
from smartcpd._problem.bounds import check_bounds
from smartcpd._problem.problem import Problem

RIDGE = 1e-12
"""The share of the trace that is added to the diagonal of V, for components that copy each
other.
"""
POLISHING = 5
"""Number of rounds over the columns of a clipped factor: next to reading the data they cost
nothing.
"""
TINY = 1e-300


def check(problem: Problem) -> None:
    check_loss(problem, "als")
    check_bounds(problem, "als")


def solved(A: np.ndarray, nG: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The factor that minimises the quadratic with gradient nG at A and curvature V."""
    ridge = RIDGE * np.trace(V) + TINY
    return A - np.linalg.solve(V + ridge * np.eye(len(V)), nG.T).T


def solved_within(
    A: np.ndarray, nG: np.ndarray, V: np.ndarray, low: float, high: float
) -> np.ndarray:
    """Return the minimiser within bounds: the free one, clipped, then improved column by column.

    Clipping alone can raise the loss, and it has fixed points that are no solutions. Exact
    minimisation over one column after another has neither fault, from the better of two starts.
    """
    D = np.clip(solved(A, nG, V), low, high) - A
    if np.sum(D * (nG + 0.5 * D @ V)) > 0:
        D = np.zeros_like(D)
    new, slope = A + D, nG + D @ V
    for r in np.tile(np.flatnonzero(np.diag(V)), POLISHING):
        column = np.clip(new[:, [r]] - slope[:, [r]] / V[r, r], low, high)
        slope += (column - new[:, [r]]) * V[r]
        new[:, [r]] = column
    return new


def minimised(quadratic: Quadratic) -> np.ndarray:
    """The factor that minimises a quadratic within the bounds of its entries."""
    A, slope, V = quadratic.A, quadratic.slope, quadratic.V
    ends = quadratic.constraint.bounds
    assert ends is not None
    if ends == (-np.inf, np.inf):
        return solved(A, slope, V)
    return solved_within(A, slope, V, *ends)


def _run(task: Task) -> Result:
    return alternate_squares(task, "als", minimised)


als = Method("als", _run, check, defaults={"loss": "gaussian"})
