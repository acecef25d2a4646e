"""Newton's method for all rows of a factor at once, each within its constraint.

Every step minimises a quadratic of each row's cost: the true Hessian, damped where that is not
positive definite or where the last step led too far. Rows that only have bounds are solved exactly
and judged one by one. A constraint that couples rows, or has a price, is met by proximal steps on
the same quadratics, and all rows are judged together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from smartcpd._kernels.bounded_rows import compiled_bounded_rows
from smartcpd._methods.row_proximal import proximal_step
from smartcpd._objectives.slices.sums import RowSums
from smartcpd.constraints import Constraint

MAX_STEPS = 200
SMALL_STEP = 1e-10
"""A step this small, relative to the largest entry of the column, ends the search."""
ROUNDING = 1e-13
"""Gains below this share of the terms of a cost cannot be told from nothing."""
ACCEPTED = 1e-4
"""A step is taken if it brings at least this share of the promised gain."""
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-7, 1e12
RIDGE = 1e-12
"""The share of the diagonal that is always added to it: two components may look the same to
a row.
"""


class Costs(Protocol):
    """The costs of the rows of a factor, such as `Slices`."""

    def at(self, A: np.ndarray) -> RowSums: ...

    def values(self, A: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Rule:
    """The constraint of a factor, and how much its penalty counts next to the sums."""

    constraint: Constraint
    scale: float = 1.0
    check_time: Callable[[], object] = lambda: None
    """Called now and then while a step is looked for, which may take long."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of single entries, if the constraint is nothing else."""
        return self.constraint.bounds

    def penalty(self, A: np.ndarray) -> float:
        return self.scale * self.constraint.penalty(A)

    def admit(self, A: np.ndarray) -> np.ndarray:
        """Return the nearest factor that is allowed."""
        if self.bounds is not None:
            return np.clip(A, *self.bounds)
        return self.constraint.apply(A)


class Rows(NamedTuple):
    """A factor, what its rows cost, and which of them were solved."""

    A: np.ndarray
    value: np.ndarray
    solved: np.ndarray


def solve_rows(costs: Costs, start: np.ndarray, rule: Rule, small_step: float = SMALL_STEP) -> Rows:
    """Minimise the rows' costs from a start, until steps are small."""
    A = rule.admit(start)
    sums = costs.at(A)
    damping = np.zeros(len(A))
    solved = np.zeros(len(A), bool)
    for _ in range(MAX_STEPS):
        D, promised = _step(A, sums, damping, rule)
        trial = A + D if rule.bounds is None else np.clip(A + D, *rule.bounds)
        # A step that was damped says nothing about how far the solution is.
        small = _is_small(D, A, trial, small_step) & (damping <= FIRST_DAMPING)
        # Derivatives are of use only where another step may follow.
        there = sums._replace(value=costs.values(trial)) if small.all() else costs.at(trial)
        taken = _accepted(rule, A, trial, sums, there.value, promised) & ~solved
        taken &= np.isfinite(there.slope).all(axis=1) & np.isfinite(there.bend).all(axis=(1, 2))
        if rule.bounds is None:
            taken[:] = taken.all()
        solved |= small & taken
        solved |= (promised <= _noise(A, sums)) & (damping <= FIRST_DAMPING)
        solved |= (damping >= MOST_DAMPING) & ~taken
        A = np.where(taken[:, None], trial, A)
        sums = sums.take(taken, there)
        if rule.bounds is None:
            solved[:] = solved.all()
        if solved.all():
            break
        damping = _damped(damping, taken)
    return Rows(A, sums.value, solved)


def improve_rows(costs: Costs, A: np.ndarray, rule: Rule) -> np.ndarray:
    """Make one Newton step for every row whose loss falls by it."""
    sums = costs.at(A)
    D, promised = _step(A, sums, np.zeros(len(A)), rule)
    trial = A + D if rule.bounds is None else np.clip(A + D, *rule.bounds)
    taken = _accepted(rule, A, trial, sums, costs.values(trial), promised)
    return np.where(taken[:, None], trial, A)


def _accepted(
    rule: Rule,
    A: np.ndarray,
    trial: np.ndarray,
    sums: RowSums,
    there: np.ndarray,
    promised: np.ndarray,
) -> np.ndarray:
    """Say which rows' cost falls by enough of what was promised; all or none where they are
    coupled.
    """
    gained, floor = sums.value - there, _noise(A, sums)
    if rule.bounds is not None:
        accepted: np.ndarray = gained >= ACCEPTED * promised - floor
        return accepted
    gain = gained.sum() + rule.penalty(A) - rule.penalty(trial)
    return np.full(len(A), bool(gain >= ACCEPTED * promised[0] - floor.sum()))


def _noise(A: np.ndarray, sums: RowSums) -> np.ndarray:
    """Return what rounding may do to the costs; their terms may nearly cancel."""
    terms = np.abs(np.einsum("jr,jrs,js->j", A, sums.bend, A))
    noise: np.ndarray = ROUNDING * (np.abs(sums.value) + terms)
    return noise


def _step(
    A: np.ndarray, sums: RowSums, damping: np.ndarray, rule: Rule
) -> tuple[np.ndarray, np.ndarray]:
    """Return a step for each row and by how much it should lower the cost.

    Where the damped Hessian is not positive definite the damping is raised, in place.
    """
    D, promised = np.zeros_like(A), np.zeros(len(A))
    while True:
        B = _positive(sums.bend, damping)
        if rule.bounds is None:
            promised[:] = np.nan
            if all_positive(B):
                promised[:] = proximal_step(
                    sums.slope, B, A, rule.constraint, rule.scale, D, rule.check_time
                )
        else:
            low, high = (np.ascontiguousarray(end - A) for end in rule.bounds)
            compiled_bounded_rows()(sums.slope, B, low, high, D, promised)
        failed = ~np.isfinite(promised)
        if not failed.any():
            return D, promised
        damping[failed] = np.maximum(10.0 * damping[failed], FIRST_DAMPING)
        if (damping[failed] > MOST_DAMPING).any():
            lost = failed & (damping > MOST_DAMPING)
            D[lost], promised[lost] = 0.0, 0.0
            if not (failed & ~lost).any():
                return D, promised


def _positive(B: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """The Hessians with a damping relative to their diagonals added to these."""
    diagonal = np.abs(np.einsum("jrr->jr", B))
    largest = diagonal.max(axis=1, keepdims=True)
    scale = np.maximum(diagonal, 1e-6 * largest) + np.finfo(float).tiny
    out = B.copy()
    np.einsum("jrr->jr", out)[:] += (damping[:, None] + RIDGE) * scale
    return out


def all_positive(B: np.ndarray) -> bool:
    """Whether all of the matrices are positive definite."""
    try:
        np.linalg.cholesky(B)
    except np.linalg.LinAlgError:
        return False
    return True


def _is_small(D: np.ndarray, A: np.ndarray, trial: np.ndarray, small_step: float) -> np.ndarray:
    column = np.maximum(np.abs(A).max(axis=0), np.abs(trial).max(axis=0))
    return (np.abs(D) <= small_step * column + np.finfo(float).tiny).all(axis=1)


def _damped(damping: np.ndarray, taken: np.ndarray) -> np.ndarray:
    less = np.where(damping > LEAST_DAMPING, 0.1 * damping, 0.0)
    more = np.minimum(np.maximum(10.0 * damping, FIRST_DAMPING), 10.0 * MOST_DAMPING)
    return np.where(taken, less, more)
