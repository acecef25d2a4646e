"""Whether the fit had come to its end, and whether other starts came to the same."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from smartcpd import threads
from smartcpd.diagnosis.case import Case, listed
from smartcpd.diagnosis.result import Finding, Severity
from smartcpd.kkt import relative_changes
from smartcpd.objectives import objective_of
from smartcpd.objectives.dense import DenseObjective
from smartcpd.sample import CellSample
from smartcpd.stack import stack

BEYOND_NOISE = 3.0
"""A gradient so many times as large as noise makes it, where the model is the truth."""
LEAST = 1e-3
"""A relative change of the factors that is never worth a mention."""
FULL_PASS = 1 << 25
"""Cells of a dense array up to which a gradient is taken over all of them."""


def not_converged(case: Case) -> Iterator[Finding]:
    """By what the fit says itself, and by the optimality conditions."""
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
    residual, noise = _residual(case)
    if residual > max(BEYOND_NOISE * noise, LEAST):
        yield Finding(
            "non-convergence",
            Severity.WARNING,
            f"a gradient step would change a factor by {residual:.2g} of its norm",
            f"A gradient step would change a factor by {residual:.2g} of its norm, and noise in "
            f"the data accounts for {noise:.2g} only: this is not the best model of this data.",
            "Go on with init= this model; if it was fitted under constraints, or with weights or "
            "a mask, pass them here as well.",
            {"kkt_residual": residual, "of_noise": noise},
        )


def disagreeing_starts(case: Case) -> Iterator[Finding]:
    """Where starts of the same fit found something else."""
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
    """What the last tenth of the epochs gained, relative to all that was gained."""
    assert case.history is not None
    objective = np.minimum.accumulate(case.history.objective)
    gained = objective[0] - objective[-1]
    late = objective[int(0.9 * (objective.size - 1))] - objective[-1]
    return float(late / gained) if gained > 0 else 0.0


def _residual(case: Case) -> tuple[float, float]:
    """The relative change of a factor under a gradient step, and how much of it noise would cause
    if the model were the truth; of the mode in which the one is largest relative to the other."""
    problem, A = case.problem, stack(case.factors)
    n_threads = threads.resolve(None)
    with threads.limited_to(n_threads):
        objective = objective_of(problem.storage, problem.loss, n_threads)
        share = 1.0
        if isinstance(objective, DenseObjective) and problem.storage.n_cells > FULL_PASS:
            objective = objective.sampled(FULL_PASS, np.random.default_rng(0))
            share = objective.n_cells / problem.storage.n_cells
        _, gradient = objective.gradient(A)
    changes = relative_changes(problem, A, gradient, CellSample(problem).curvature(A))
    found = []
    for (change, unit), squares in zip(changes, case.tallies.noise, strict=True):
        noise = unit * math.sqrt(squares / share) / problem.storage.n_observed
        found.append((change / max(noise, LEAST / BEYOND_NOISE), change, noise))
    _, residual, noise = max(found)
    return residual, noise
