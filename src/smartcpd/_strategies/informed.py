"""A start for factors of which something is known: a fit that knows nothing, put in order.

Descents with known entries begin at random and cannot exchange components with one another, so that
many end in poor places. A search without that knowledge ends near the optimum; its components then
take the places of the known ones that they resemble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from smartcpd import constraints
from smartcpd._common.factors import balanced, best_pairs
from smartcpd._common.stacked import stack
from smartcpd._methods.base import Settings
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem
from smartcpd._problem.shared import NONE_SHARED
from smartcpd._strategies.auto import choice
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.sequence import FitSequence
from smartcpd.constraints import Constraint, EntryBounds

TINY = 1e-300


def informed_start(
    problem: Problem,
    settings: Settings,
    rng: np.random.Generator,
    other: list[np.ndarray],
) -> list[np.ndarray] | None:
    """Return a start for a problem with known entries or shared factors, better than another one.

    It is the solution of the same problem without them, by the strategy that serves that; None if
    there is none, or if it is no better.
    """
    plain = tuple(_plain(c) for c in problem.constraints)
    relaxed = replace(problem, constraints=plain, shared=NONE_SHARED)
    strategy, _ = choice(relaxed, settings)
    if not isinstance(strategy, Strategy):
        return None
    sequence = FitSequence(
        replace(settings, journal=settings.journal.branch("informed")), lambda epoch: None
    )
    result = sequence.run(strategy, relaxed, rng)
    if result.status.interrupted:
        raise KeyboardInterrupt
    found = placed(balanced(result.factors), problem.constraints)
    found = problem.shared.averaged(found)
    found = [c.apply(A) for c, A in zip(problem.constraints, found, strict=True)]
    objective = objective_of(problem.storage, problem.loss, settings.n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        own, theirs = (objective.estimate(stack(start)).loss for start in (found, other))
    # Known entries at another scale than the fit's may lead beyond the range of a link.
    return found if own < theirs else None


def placed(factors: Sequence[np.ndarray], rules: Sequence[Constraint]) -> list[np.ndarray]:
    """Return components in the places, and at the scales, of the known ones that they resemble."""
    known = [
        (rule.known, rule.low) if isinstance(rule, EntryBounds) else (np.zeros(A.shape, bool), A)
        for A, rule in zip(factors, rules, strict=True)
    ]
    likeness: np.ndarray = np.prod(
        [_likeness(A, held, value) for A, (held, value) in zip(factors, known, strict=True)], axis=0
    )
    found, place = best_pairs(likeness)
    order = found[np.argsort(place)]
    out = [A[:, order].copy() for A in factors]
    for r in range(out[0].shape[1]):
        scales = [
            _scale(A[:, r], held[:, r], value[:, r])
            for A, (held, value) in zip(out, known, strict=True)
        ]
        free = [n for n, scale in enumerate(scales) if scale is None]
        given = float(np.prod([scale for scale in scales if scale is not None]))
        for n, scale in enumerate(scales):
            # The scale that known entries ask for is taken from the modes that have none, and so
            # is the sign, of which models of real numbers leave open where it is.
            rest = abs(given) ** (-1.0 / max(len(free), 1))
            rest = -rest if given < 0 and [n] == free[:1] else rest
            out[n][:, r] *= rest if scale is None else scale
    return out


def _likeness(A: np.ndarray, held: np.ndarray, value: np.ndarray) -> np.ndarray:
    """How much each component (rows) is like what is known of each place (columns), up to 1."""
    rank = A.shape[1]
    out = np.ones((rank, rank))
    for r in range(rank):
        rows = held[:, r]
        if not rows.any():
            continue
        known = value[rows, r]
        size = np.linalg.norm(A[rows], axis=0)
        if known.any():
            out[:, r] = A[rows].T @ known / np.maximum(size * np.linalg.norm(known), TINY)
        else:  # what is known is that there is nothing
            out[:, r] = 1.0 - size / np.maximum(np.linalg.norm(A, axis=0), TINY)
    return np.abs(out)


def _scale(column: np.ndarray, held: np.ndarray, value: np.ndarray) -> float | None:
    """By how much a column is too small for what is known of it; None if that is nothing."""
    inner = float(column[held] @ value[held])
    if inner == 0:
        return None
    return inner / max(float(column[held] @ column[held]), TINY)


def _plain(rule: Constraint) -> Constraint:
    return constraints.get("free" if rule.signed else "nonnegative")
