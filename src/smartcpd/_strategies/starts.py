"""Starts: factors from which a fit begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smartcpd._data.storage import SparseStorage
from smartcpd._problem.problem import Problem
from smartcpd.constraints import EntryBounds
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Data, Domain

NAMES = ("random", "als", "smd")
SMALL = 0.05
"""The size of components that are added to a start, relative to a whole random model."""
TINY = 1e-300


def make_start(
    problem: Problem, init: Any, overcomplete: float, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return factors inside their constraints: random ones, or a copy of the user's."""
    if isinstance(init, str):
        if init not in NAMES:
            raise InvalidParameterError(
                f"init must be one of {', '.join(map(repr, NAMES))}, a CPModel or a list of "
                f"factors; got {init!r}."
            )
        # Superfluous components need a mode that can shrink them.
        can_shrink = not problem.needs_plain_descents and not all(
            c.bounded for c in problem.constraints
        )
        width = math.ceil(overcomplete * problem.rank) if can_shrink else problem.rank
        make = marginal_factors if _has_marginals(problem) else random_factors
        factors = make(problem, width, rng)
        if problem.has_entry_bounds:
            factors = around_known(problem, factors)
        factors = problem.shared.from_first(factors)
    else:
        factors = problem.shared.averaged(given_factors(problem, init))
    maps = problem.phases[0].mirrors
    return [
        c.apply(A, mirror=phi) for A, c, phi in zip(factors, problem.constraints, maps, strict=True)
    ]


def marginal_factors(problem: Problem, width: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return random columns around the sums over slices of sparse data, every component alike.

    The model begins near independence of the modes, and is large where there is something to see;
    the mean over a huge tensor would be lost next to the smallest numbers.
    """
    storage = problem.stored_as(SparseStorage)
    total = problem.loss.link(storage.mean()) * storage.n_cells
    factors = []
    for sums in problem.shared.averaged(storage.marginals()):
        A = (sums + 1e-3 * (sums.mean() or 1.0))[:, None] * rng.gamma(10.0, 0.1, (sums.size, width))
        factors.append(A / A.sum(axis=0) * (total / width) ** (1 / len(problem.shape)))
    return factors


def random_factors(problem: Problem, width: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random factors of ``width`` components whose model has the level of the data.

    Nonnegative ones are uniform, with the mean of the model equal to the mean of the data (through
    the loss's link); signed ones are normal, with its mean square.
    """
    factors = [
        rng.standard_normal((size, width)) if c.signed else rng.random((size, width))
        for size, c in zip(problem.shape, problem.constraints, strict=True)
    ]
    level = problem.loss.link(problem.storage.mean())
    if any(c.signed for c in problem.constraints):
        grams = np.prod([A.T @ A / len(A) for A in factors], axis=0)
        if problem.loss.data is Data.REAL:
            level = np.sqrt(problem.storage.mean_square())
        else:
            # Random signs at the level of rare events, through a log or logit, would start at
            # predictions that are off by many powers of ten.
            level = min(max(abs(level), 0.1), 0.5)
        now = np.sqrt(grams.sum())
    else:
        now = np.prod([A.mean(axis=0) for A in factors], axis=0).sum()
    ratio = (abs(level) or 1.0) / now
    return [A * ratio ** (1 / len(factors)) for A in factors]


def around_known(problem: Problem, factors: list[np.ndarray]) -> list[np.ndarray]:
    """The same start with what is known in its place, and the rest at a scale at which the model
    has the size that it had.
    """
    known = [
        c.known if isinstance(c, EntryBounds) else np.zeros(A.shape, bool)
        for c, A in zip(problem.constraints, factors, strict=True)
    ]
    values = [c.apply(A) for c, A in zip(problem.constraints, factors, strict=True)]
    held = [np.where(k, V, 0.0) for k, V in zip(known, values, strict=True)]
    free = [np.where(k, 0.0, A) for k, A in zip(known, factors, strict=True)]

    def size(scale: float) -> float:
        columns = [H + scale * F for H, F in zip(held, free, strict=True)]
        return float(np.prod([A.T @ A / len(A) for A in columns], axis=0).sum())

    wanted = float(np.prod([A.T @ A / len(A) for A in factors], axis=0).sum())
    # What is known may be as large as the data by itself: then the rest begins small.
    steps = np.arange(-40, 41) / 2.0
    sizes = np.array([size(10.0**step) for step in steps])
    nearest = int(np.argmin(np.abs(np.log(np.maximum(sizes, TINY)) - np.log(max(wanted, TINY)))))
    return [H + 10.0 ** steps[nearest] * F for H, F in zip(held, free, strict=True)]


def _has_marginals(problem: Problem) -> bool:
    """Whether the sums over slices say where a model of the data is large."""
    storage = problem.storage
    return (
        storage.absent == "zero"
        and storage.mean() > 0
        and problem.loss.domain is Domain.NONNEGATIVE
    )


def with_more_components(
    problem: Problem, factors: Sequence[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the factors of a smaller model with random components beside them, small ones, which
    leave its values nearly as they are.
    """
    missing = problem.rank - factors[0].shape[1]
    more = random_factors(problem, missing, rng)
    scale = SMALL ** (1 / len(more))
    return [np.hstack([A, scale * B]) for A, B in zip(factors, more, strict=True)]


def given_factors(problem: Problem, init: Any) -> list[np.ndarray]:
    """A copy of the user's start, checked."""
    factors: Sequence[Any] = init
    shapes = [np.shape(A) for A in factors]
    rows_fit = [s[0] if len(s) == 2 else -1 for s in shapes] == list(problem.shape)
    width = shapes[0][-1] if shapes and shapes[0] else 0
    too_wide = problem.needs_plain_descents and width > problem.rank
    if not rows_fit or width < problem.rank or too_wide or any(s[1] != width for s in shapes):
        expected = [(size, problem.rank) for size in problem.shape]
        raise InvalidParameterError(
            f"init has factors of shapes {shapes}; this problem needs {expected}, or more columns "
            "to be merged."
        )
    copies = [np.array(A, dtype=np.float64) for A in factors]
    for mode, A in enumerate(copies):
        if not np.isfinite(A).all():
            raise InvalidParameterError(
                f"init holds NaN or infinity in the factor of mode {mode}; it must be finite."
            )
    return copies
