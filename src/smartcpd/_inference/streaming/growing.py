"""A mode that grows: new rows for new slices, and the other factors brought up to date.

The slices that came before are not needed: of them a quadratic for every row is remembered
(`past`). New rows and the other factors are fitted in turn to the new slices and those quadratics
together.
Where the other factors have turned, old rows are written anew in terms of them, so that the model
of the old slices stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smartcpd._inference.streaming.past import Memory, Past, WithMemory
from smartcpd._inference.streaming.transform import NewSlices
from smartcpd._kernels.bounded_rows import compiled_bounded_rows
from smartcpd._methods.row_newton import Rows, Rule, improve_rows
from smartcpd.errors import IncompatibleError

FIRST_STEP = 1.0
"""The last step of new rows, relative to a column, before the other factors join."""
SWEEPS = 40
SETTLED, LOOSEST = 5e-3, 1e-1
"""Relative change of the factors in a sweep that ends an arrival: the former for the first slices,
up to the latter as more is remembered, since what is left is led on by the slopes remembered."""
RIDGE = 1e-9
"""The share of the diagonal that is added to it: where two components have become alike, old rows
stay what they were.
"""


class Grown(NamedTuple):
    """The result of an arrival of new slices."""

    factors: list[np.ndarray]
    """The factors, with old rows and new ones in the mode that grows."""
    past: Past
    """What is remembered of all slices so far."""
    sweeps: int
    settled: bool
    rows: Rows
    """The first rows of the new slices, before other factors were touched."""


def grow(new: NewSlices, past: Past, forgetting: float, n_threads: int) -> Grown:
    """Fit new slices; call it within `threads.limited_to`."""
    old = past.faded(forgetting)
    mode, n_observed = new.mode, old.n_observed + new.storage.n_observed
    rules = [Rule(constraint, n_observed) for constraint in new.constraints]
    rows = new.solved(n_threads, FIRST_STEP)
    factors = [A.copy() for A in new.factors]
    factors[mode] = rows.A
    enough = min(LOOSEST, SETTLED * n_observed / new.storage.n_observed)
    settled, sweeps = False, 0
    while not settled and sweeps < SWEEPS:
        before = list(factors)
        for k in (*old.memories, mode):
            slices = new.slices(k, factors, n_threads)
            costs = slices if k == mode else WithMemory(slices, old.memories[k])
            factors[k] = improve_rows(costs, factors[k], rules[k])
        sweeps += 1
        changes = [_change(A, B) for A, B in zip(factors, before, strict=True)]
        settled = max(changes) < enough
    memories, total = {}, 0.0
    for k, memory in old.memories.items():
        sums = new.slices(k, factors, n_threads).at(factors[k])
        total = float(sums.value.sum())
        memories[k] = Memory.of(factors[k], sums).plus(memory)
    kept = Past(mode, memories, n_observed, old.loss + total)
    carried = _carried(new.factors, factors, mode, rules[mode])
    factors[mode] = np.concatenate([carried, factors[mode]])
    return Grown(factors, kept, sweeps, settled, rows)


def first_past(new: NewSlices, n_threads: int) -> Past:
    """Return what is remembered of the data that a model was fitted to."""
    memories, total = {}, 0.0
    for k, A in enumerate(new.factors):
        if k != new.mode:
            sums = new.slices(k, new.factors, n_threads).at(A)
            memories[k] = Memory.of(A, sums)
            total = float(sums.value.sum())
    return Past(new.mode, memories, new.storage.n_observed, total)


def check_growth(new: NewSlices) -> None:
    """Refuse a constraint on whole columns of the growing mode, which would change rows of the
    past.
    """
    constraint = new.constraints[new.mode]
    if constraint.columnwise:
        raise IncompatibleError(
            f"Constraint '{constraint}' ties all rows of mode {new.mode} together, so new rows "
            "cannot be added to those of slices that are not kept. Let another mode grow, or use "
            "an entry-wise constraint such as 'nonnegative' for it."
        )


def _carried(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray], mode: int, rule: Rule
) -> np.ndarray:
    """Return the old rows in terms of the new other factors: the least squares between the two
    models of the old slices, which Gram matrices are enough for.
    """
    A = before[mode]
    if rule.bounds is None:
        return A
    pairs = [(B, C) for n, (B, C) in enumerate(zip(before, after, strict=True)) if n != mode]
    gram = np.prod([C.T @ C for _, C in pairs], axis=0)
    mixed = np.prod([C.T @ B for B, C in pairs], axis=0)
    slope = np.ascontiguousarray(A @ (gram - mixed.T))
    bend = gram + RIDGE * np.diag(np.diag(gram)) + np.finfo(float).tiny * np.eye(len(gram))
    D, gains = np.zeros_like(A), np.zeros(len(A))
    low, high = (np.ascontiguousarray(end - A) for end in rule.bounds)
    bends = np.repeat(bend[None], len(A), axis=0)
    compiled_bounded_rows()(slope, bends, low, high, D, gains)
    return np.where(np.isfinite(gains)[:, None], np.clip(A + D, *rule.bounds), A)


def _change(A: np.ndarray, B: np.ndarray) -> float:
    return float(np.linalg.norm(A - B) / (np.linalg.norm(A) or 1.0))
