"""Measures how an iteration divides its time between sampling, gradient and update.

The compiled loops do not stop between these parts. Sampling is timed by itself: drawing, and the
compiled reading of what was drawn. An iteration that reads a single fiber, or a single cell, does
little but update the factors. What a whole iteration takes beyond these two is the gradient.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense
from smartcpd._fitting.settings import make_settings
from smartcpd._kernels.gather import compiled_reading
from smartcpd._methods.gcp_adam import Adam, GCPAdam
from smartcpd._methods.smd_phase import Sweeper
from smartcpd._problem.problem import Problem
from smartcpd.sampling.cells import UniformCells
from smartcpd.sampling.uniform import Uniform

PARTS = ("sampling", "gradient", "update")
ITERATIONS = 500
"""Number of iterations in one call of the compiled loops."""
DTYPE = "float64"


@dataclass(frozen=True)
class Breakdown:
    """Median microseconds that an iteration spends on each part."""

    method: str
    parts: dict[str, float]

    @classmethod
    def of(cls, method: str, sampling: float, update: float, total: float) -> Breakdown:
        """Make a breakdown in which the gradient is what the other parts leave of the total."""
        gradient = max(total - sampling - update, 0.0)
        return cls(method, dict(zip(PARTS, (sampling, gradient, update), strict=True)))

    @property
    def total(self) -> float:
        return sum(self.parts.values())


def measured(X: np.ndarray, rank: int, repeats: int = 21, seed: int = 0) -> list[Breakdown]:
    """Time both stochastic methods of the paper on a dense cube of counts, as many entries each."""
    problem = Problem.build(X, rank, "poisson", mirror="entropy", step="adagrad(1, 1e-5)")
    rng = np.random.default_rng(seed)
    A = stack([rng.random((size, rank)) for size in X.shape])
    with threads.limited_to(1):
        calls = smartcpd_calls(problem, A, 2 * rank, rng) | gcp_calls(problem, A, 2 * rank, rng)
        took = medians(calls, repeats)
    reading = took["draw fibers"] + took["read fibers"]
    return [
        # The loops of SmartCPD read fibers themselves, those of GCP-OPT get what was read.
        Breakdown.of("SmartCPD", reading, took["one fiber"], took["draw fibers"] + took["fibers"]),
        Breakdown.of(
            "GCP-OPT", took["draw cells"], took["one cell"], took["draw cells"] + took["cells"]
        ),
    ]


def medians(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median microseconds of an iteration by the processor's clock; calls take turns."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.process_time()
            call()
            spent[name].append(time.process_time() - began)
    return {name: 1e6 * float(np.median(s)) / ITERATIONS for name, s in spent.items()}


def smartcpd_calls(
    problem: Problem, A: np.ndarray, n_fibers: int, rng: np.random.Generator
) -> dict[str, Callable[[], Any]]:
    """Return calls that draw fibers, read them, and run iterations on many of them or on one."""
    storage = problem.stored_as(Dense)
    modes = rng.integers(len(problem.shape), size=ITERATIONS)
    draws = Uniform().draw(storage, modes, n_fibers, rng)
    single = Uniform().draw(storage, modes, 1, rng)

    def sweeper(n: int) -> Sweeper:
        made = Sweeper(
            problem, problem.phases[0], make_settings(problem, n_fibers=n, dtype=DTYPE, n_threads=1)
        )
        made.start(A, rng)
        return made

    many, one = sweeper(n_fibers), sweeper(1)
    moved, moved_by_one = A.copy(), A.copy()
    out = np.empty((max(problem.shape), n_fibers))
    gather, handle, read = storage.gather_block(DTYPE), storage.handle(), compiled_reading(DTYPE)
    return {
        "draw fibers": lambda: Uniform().draw(storage, modes, n_fibers, rng),
        "read fibers": lambda: read(gather, handle, modes, draws.fibers, out),
        "fibers": lambda: many.run(draws, moved),
        "one fiber": lambda: one.run(single, moved_by_one),
    }


def gcp_calls(
    problem: Problem, A: np.ndarray, n_fibers: int, rng: np.random.Generator
) -> dict[str, Callable[[], Any]]:
    """Return calls that draw and read cells, and run iterations on many of them or on one."""
    storage = problem.stored_as(Dense)
    sampler = UniformCells.of(storage, n_fibers * max(problem.shape))
    single = UniformCells.of(storage, 1)
    many, one = (Adam(GCPAdam(), problem, A) for _ in range(2))
    cells, cell = (s.draw(ITERATIONS, rng) for s in (sampler, single))
    rate = GCPAdam().rate
    return {
        "draw cells": lambda: sampler.draw(ITERATIONS, rng),
        "cells": lambda: many.run(cells, sampler.weights, rate),
        "one cell": lambda: one.run(cell, single.weights, rate),
    }
