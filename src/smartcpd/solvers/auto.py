"""Which solver a problem gets when the user does not say."""

from __future__ import annotations

import numpy as np

from smartcpd.problem import Problem
from smartcpd.solvers.base import Observer, Result, Settings, Solver
from smartcpd.solvers.bounds import are_bounds
from smartcpd.solvers.core import core
from smartcpd.solvers.expected_counts import serves
from smartcpd.solvers.large import large
from smartcpd.solvers.mm import mm
from smartcpd.solvers.online import online
from smartcpd.solvers.smd import smd
from smartcpd.storage import SparseTensor

FULL_PASSES = 1 << 22
"""Cells of a dense tensor up to which passes over all of them are cheap."""


def choice(problem: Problem, settings: Settings) -> tuple[Solver, str]:
    """The solver for a problem, and why it is the one."""
    storage = problem.storage
    if settings.stochastic:
        return smd, "a mirror map, step, sampler or number of fibers of your choice"
    if isinstance(storage, SparseTensor):
        if storage.nnz == 0 or not serves(problem):
            return smd, "sparse data whose loss or constraint has no multiplicative updates"
        if settings.given_start:
            return mm, "sparse counts or events, from a start of yours"
        return online, "sparse counts or events"
    if not are_bounds(problem):
        return smd, "constraints that are more than bounds on single entries"
    if storage.n_cells > FULL_PASSES:
        return large, f"dense data of more than {FULL_PASSES} cells"
    return core, f"dense data of at most {FULL_PASSES} cells"


def _run(
    problem: Problem,
    settings: Settings,
    start: list[np.ndarray],
    rng: np.random.Generator,
    observe: Observer,
) -> Result:
    """Fit with the solver that suits the problem."""
    solver, _ = choice(problem, settings)
    return solver.run(problem, settings, start, rng, observe)


auto = Solver("auto", _run)
