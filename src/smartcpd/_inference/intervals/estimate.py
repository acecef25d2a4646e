"""Intervals for loadings; see `smartcpd.CPModel.intervals`."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._common.parameters import check_integer
from smartcpd._fitting.answers.intervals import Intervals
from smartcpd._fitting.model import CPModel
from smartcpd._inference.intervals.bootstrap import bootstrap_ends
from smartcpd._inference.intervals.hessian import Errors, conditional_errors, joint_errors
from smartcpd._inference.intervals.question import Question
from smartcpd.errors import InvalidParameterError

METHODS = ("auto", "hessian", "conditional", "bootstrap")
MAX_PARAMETERS = 3000
"""The matrix of all pairs of loadings is formed up to this many of them: 72 MB, some seconds."""
MAX_CELLS = 1 << 23
"""The curvatures of cells are held in memory, or simulated, up to this many cells."""


def intervals(
    model: CPModel,
    X: Any,
    level: float = 0.9,
    *,
    method: str = "auto",
    constraint: Any = "auto",
    dispersion: float | None = None,
    n_bootstrap: int = 200,
    random_state: Any = None,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
) -> Intervals:
    """Return intervals for loadings; see `smartcpd.CPModel.intervals`."""
    if method not in METHODS:
        raise InvalidParameterError(
            f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}."
        )
    check_integer("n_bootstrap", n_bootstrap, at_least=20)
    question = Question.checked(model, X, level, constraint, absent, mask, weights)
    chosen = _method(question, method)
    if chosen != "bootstrap":
        question.check_bounds(chosen)
        question.check_bends(chosen)
    spread = question.dispersion(dispersion)
    if chosen == "bootstrap":
        rng = np.random.default_rng(random_state)
        ends = bootstrap_ends(question, spread, int(n_bootstrap), rng)
    else:
        errors = joint_errors if chosen == "hessian" else conditional_errors
        ends = _ends(question, errors(question, spread), spread)
    return Intervals(question.model, *ends, question.level, chosen, spread, question.at_bound)


def _method(question: Question, method: str) -> str:
    n_parameters = sum(A.size for A in question.factors)
    small = n_parameters <= MAX_PARAMETERS and question.storage.n_cells <= MAX_CELLS
    if method == "auto":
        return "hessian" if small else "conditional"
    if method == "hessian" and not small:
        raise InvalidParameterError(
            f"method='hessian' forms a matrix of all pairs of loadings, for at most "
            f"{MAX_PARAMETERS:,} loadings and {MAX_CELLS:,} cells; {question.model!r} has "
            f"{n_parameters:,} and {question.storage.n_cells:,}. Use method='conditional'."
        )
    if method == "bootstrap" and question.storage.n_cells > MAX_CELLS:
        raise InvalidParameterError(
            f"method='bootstrap' simulates every cell, of at most {MAX_CELLS:,}; "
            f"{question.model!r} has {question.storage.n_cells:,}. Use method='conditional'."
        )
    return method


def _ends(
    question: Question, errors: Errors, dispersion: float
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]:
    """Return the ends: two-sided about the estimates, cut off at bounds; one-sided for those at a
    bound.
    """
    from scipy.stats import norm

    two, one = norm.ppf(0.5 + 0.5 * question.level), norm.ppf(question.level)
    lower, upper = [], []
    for n, (A, error) in enumerate(zip(question.model.factors, errors.factors, strict=True)):
        low, high = A - two * error, A + two * error
        held = question.at_bound[n]
        low = np.where(held, 0.0, low)
        reach = _reach(errors.slopes[n], errors.bends[n], dispersion * one**2)
        high = np.where(held, reach, high)
        if question.nonnegative[n]:
            low = np.maximum(low, 0.0)
        rows = question.unseen[n]
        low[rows], high[rows] = (0.0 if question.nonnegative[n] else -np.inf), np.inf
        lower.append(low)
        upper.append(high)
    scale = two * errors.weights
    return lower, upper, question.model.weights - scale, question.model.weights + scale


def _reach(slope: np.ndarray, bend: np.ndarray, twice: float) -> np.ndarray:
    """Return how far an entry can rise from its bound until slope t + bend t² / 2 is half of
    ``twice``, where it is as unlikely as the end of an interval.
    """
    g, h = np.maximum(slope, 0.0), np.maximum(bend, 0.0)
    divisor = g + np.sqrt(g**2 + h * twice)
    reach: np.ndarray = twice / np.maximum(divisor, 1e-300)
    return reach
