"""The fit of columns on the simplex: first without that constraint, then with it.

Without it the problem is one of bounds, for which there are good starts and quick finishes; data
that was made from columns of unit sum has its solution nearby.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd import constraints
from smartcpd._methods.base import Method, Result, Settings, Task
from smartcpd._methods.mm import mm
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.dense import dense
from smartcpd._strategies.sequence import FitSequence
from smartcpd._strategies.subsampled import FULL_PASSES, subsampled
from smartcpd.errors import IncompatibleError

TINY = 1e-300
CARE = 0.02


def serves(problem: Problem) -> bool:
    """Whether the data is dense counts or events with factors of the right kind."""
    names = {c.name for c in problem.constraints}
    dense = problem.storage.absent == "none"
    counted = problem.loss.pseudo_count_slope is not None
    return dense and counted and names <= {"simplex", "nonnegative"}


def check(problem: Problem) -> None:
    """Refuse what `serves` does not hold for."""
    if not serves(problem):
        raise IncompatibleError(
            "Solver 'simplex' serves dense counts or events (poisson, bernoulli-odds) whose "
            f"factors are nonnegative or on the simplex; got {problem}. Use solver='smd'."
        )


def normalised(factors: list[np.ndarray], on_simplex: list[bool]) -> list[np.ndarray]:
    """Scale columns to unit sum where wanted; the scale goes to the other modes, if there
    are any.
    """
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


def _run(search: Search) -> Result:
    problem, settings, rng = search.problem, search.settings, search.rng
    sequence = FitSequence(settings, search.observe)
    plain = tuple(constraints.get("nonnegative") for _ in problem.constraints)
    free = replace(problem, constraints=plain)
    first = subsampled if problem.storage.n_cells > FULL_PASSES else dense
    result = sequence.run(first, free, rng, prefix="without the constraint: ")
    start = normalised(result.factors, [c.name == "simplex" for c in problem.constraints])
    if result.ended:
        return replace(result, factors=start)
    sequence.settings = careful(settings)
    return sequence.run(mm, problem, rng, start)


def careful(settings: Settings) -> Settings:
    """Settings for a finish: what is left to gain then is small next to the loss."""
    stopping = replace(settings.stopping, tol=CARE * settings.stopping.tol)
    return replace(settings, stopping=stopping)


def _run_from(task: Task) -> Result:
    return mm.run(replace(task, settings=careful(task.settings)))


_finish = Method("simplex", _run_from, check)
simplex = Strategy("simplex", _run, lambda problem: _finish, check, compares_starts=True)
