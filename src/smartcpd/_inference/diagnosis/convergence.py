"""Checks whether the fit had come to its end, and whether other starts came to the same."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._fitting.answers.diagnosis import Finding, Severity
from smartcpd._inference.diagnosis.case import Case, listed
from smartcpd._objectives import objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._objectives.dense import DenseObjective
from smartcpd._objectives.kkt import projected_steps

BEYOND_NOISE = 2.5
"""A gradient counts as too large if it is so many times as large as noise alone would make it."""
LEAST = 1e-3
"""A relative change of the factors below which nothing is reported."""
FULL_PASS = 1 << 25
"""A gradient is taken over all cells of a dense array up to this many."""


def not_converged(case: Case) -> Iterator[Finding]:
    """Check what the fit says itself, and the optimality conditions."""
    status = case.status
    if status is not None and not status.converged:
        figures = {} if not case.history else {"last_tenth": _still_falling(case)}
        yield Finding(
            "non-convergence",
            Severity.WARNING,
            "the fit ended before its loss had settled",
            f"The fit ended before its loss had settled: {status.reason}",
            "Give it more time or epochs, or go on from here with init= this model.",
            figures,
        )
        return
    residual, excess = _residual(case)
    if excess > BEYOND_NOISE and residual > LEAST:
        yield Finding(
            "non-convergence",
            Severity.WARNING,
            f"the gradient is {excess:.2g} times as large as noise makes it",
            f"The gradient is {excess:.2g} times as large as noise in the data would make it if "
            f"the model were the truth (a step would change a factor by {residual:.2g} of its "
            "norm): this is not the best model of this data.",
            "Go on with init= this model; if it was fitted under constraints, or with weights or "
            "a mask, pass them here as well.",
            {"kkt_residual": residual, "over_noise": excess},
        )


def disagreeing_starts(case: Case) -> Iterator[Finding]:
    """Check whether starts of the same fit found different components."""
    found = case.consensus
    if found is None or found.agree:
        return
    unsure = [case.component(r) for r, s in enumerate(found.stability) if s < 0.5]
    yield Finding(
        "disagreeing starts",
        Severity.WARNING,
        f"the best two starts disagree in {found.differing} of {found.rank} components",
        found.warning,
        f"Do not read much into components {listed(unsure)}, whose stability is below one half."
        if unsure
        else "Every component of the model is fairly stable; compare more starts to be sure.",
        {"stability": found.stability.tolist(), "differing": found.differing, "gap": found.gap},
    )


def _still_falling(case: Case) -> float:
    """Return what the last tenth of the epochs gained, relative to all that was gained."""
    assert case.history is not None
    objective = np.minimum.accumulate(case.history.objective)
    gained = objective[0] - objective[-1]
    late = objective[int(0.9 * (objective.size - 1))] - objective[-1]
    return float(late / gained) if gained > 0 else 0.0


def _residual(case: Case) -> tuple[float, float]:
    """Return the largest relative change of a factor under a projected gradient step, and how many
    times as large the gradient is as noise makes it where the model is the truth.

    Gradients are compared after multiplication by the factors, as multiplicative updates see them:
    what a single event adds to that is bounded, however surprising it is.
    """
    problem, A = case.problem, stack(case.factors)
    n_threads = threads.resolve(None)
    with threads.limited_to(n_threads):
        objective = objective_of(problem.storage, problem.loss, n_threads)
        share = 1.0
        if isinstance(objective, DenseObjective) and problem.storage.n_cells > FULL_PASS:
            objective = objective.sampled(FULL_PASS, np.random.default_rng(0))
            share = objective.n_cells / problem.storage.n_cells
        _, gradient = objective.gradient(A)
    if not np.isfinite(gradient).all():
        return math.inf, math.inf
    # Counts that scatter more widely than the loss says make noisier gradients, too.
    squares = case.tallies.noise * max(case.tallies.ratio, 1.0)
    noise = math.sqrt(squares / share) / problem.storage.n_observed
    steps = projected_steps(problem, A, gradient, CellSample(problem).curvature(A))
    residual = excess = 0.0
    for factor, (moved, size, length) in zip(case.factors, steps, strict=True):
        residual = max(residual, float(np.linalg.norm(moved)) / size)
        pull = float(np.linalg.norm(factor * moved)) / length
        excess = max(excess, pull / noise if noise > 0 else math.inf)
    return residual, excess
