"""Columns on the simplex: first without that constraint, then with it.

Without it the problem is one of bounds, for which there are good starts and quick finishes; data
that was made from columns of unit sum has its solution nearby.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd import constraints
from smartcpd._data.storage import Dense
from smartcpd._methods.base import Result, Solver, Task
from smartcpd._methods.mm import mm
from smartcpd._problem.problem import Problem
from smartcpd._strategies.dense import core
from smartcpd._strategies.sequence import Relay
from smartcpd._strategies.subsampled import FULL_PASSES, large
from smartcpd.errors import IncompatibleError

TINY = 1e-300
CARE = 0.02


def serves(problem: Problem) -> bool:
    names = {c.name for c in problem.constraints}
    dense = isinstance(problem.storage, Dense)
    return (
        dense
        and problem.loss.pseudo_count_slope is not None
        and names <= {"simplex", "nonnegative"}
    )


def check(problem: Problem) -> None:
    if not serves(problem):
        raise IncompatibleError(
            "Solver 'relaxed' serves dense counts or events (poisson, bernoulli-odds) whose "
            f"factors are nonnegative or on the simplex; got {problem}. Use solver='smd'."
        )


def normalised(factors: list[np.ndarray], on_simplex: list[bool]) -> list[np.ndarray]:
    """Columns of unit sum where wanted, the scale going to the other modes, if there are any."""
    # A column that vanished becomes uniform.
    factors = [A + TINY for A in factors]
    sums = [
        A.sum(axis=0) if simplex else np.ones(A.shape[1])
        for A, simplex in zip(factors, on_simplex, strict=True)
    ]
    share = np.prod(sums, axis=0) ** (1 / max(1, on_simplex.count(False)))
    return [
        A / total if simplex else A * share
        for A, total, simplex in zip(factors, sums, on_simplex, strict=True)
    ]


def _run(task: Task) -> Result:
    problem, settings, start, rng = task.problem, task.settings, task.start, task.rng
    relay = Relay(settings, task.observe)
    if not settings.given_start:
        plain = tuple(constraints.get("nonnegative") for _ in problem.constraints)
        free = replace(problem, constraints=plain)
        first = large if problem.storage.n_cells > FULL_PASSES else core
        result = relay.run(
            first, free, start, rng, given_start=False, prefix="without the constraint: "
        )
        start = normalised(result.factors, [c.name == "simplex" for c in problem.constraints])
        if result.ended:
            return replace(result, factors=start)
    # What is left to gain is small next to the loss.
    stopping = replace(settings.stopping, tol=CARE * settings.stopping.tol)
    relay.settings = replace(settings, stopping=stopping)
    return relay.run(mm, problem, start, rng, given_start=True)


relaxed = Solver("relaxed", _run, check, compares_starts=True)
