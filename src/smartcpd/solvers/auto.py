"""Which solver a problem gets when the user does not say."""

from __future__ import annotations

import numpy as np

from smartcpd.problem import Problem
from smartcpd.solvers.base import Observer, Result, Settings, Solver
from smartcpd.solvers.expected_counts import serves
from smartcpd.solvers.mm import mm
from smartcpd.solvers.online import online
from smartcpd.solvers.smd import smd
from smartcpd.storage import SparseTensor


def chosen(problem: Problem, given_start: bool) -> Solver:
    """Passes over the nonzeros where zeros cost nothing, stochastic mirror descent elsewhere."""
    if isinstance(problem.storage, SparseTensor) and problem.storage.nnz and serves(problem):
        return mm if given_start else online
    return smd


def _run(
    problem: Problem,
    settings: Settings,
    start: list[np.ndarray],
    rng: np.random.Generator,
    observe: Observer,
) -> Result:
    """Fit with the solver that suits the problem."""
    return chosen(problem, settings.given_start).run(problem, settings, start, rng, observe)


auto = Solver("auto", _run)
