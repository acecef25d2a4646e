"""Sparse counts from the same start: passes that hold entries above 0 against solver `mm`.

A start is the best of one search without children. Both ways go on from there on one thread: solver
`mm` by 500 passes; and the descent of a default fit by *bursts*, passes in float32 whose entries
are held above 0, followed by careful passes without a bound, which have the last word. What counts
is the time at which the careful passes have the loss at which `mm` ends. From random starts, which
lead to different solutions, the loss after as many passes of each is compared instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import real_data
from benchmarks.ours import tensor_of
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SparseTensor, datasets
from smartcpd._common.stacked import stack, unstack
from smartcpd._fitting.fit import fit
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import Bursts
from smartcpd._methods.mm import Passes
from smartcpd._problem.problem import Problem
from smartcpd._strategies.sparse import sparse_start
from smartcpd._strategies.starts import marginal_factors

PASSES, A_BURST, CAREFUL = 500, 25, 5
"""Passes of `mm`, of a burst, and of careful ones after each burst."""
COMPARED = (40, 160)
SEEDS = range(5)


def planted() -> SparseTensor:
    return datasets.events((1000, 500, 300), 20, 1_100_000, random_state=7)[0]


DATA: dict[str, tuple[Callable[[], SparseTensor], int]] = {
    "Uber April 2014": (lambda: tensor_of(real_data.uber_april()), 10),
    "Chicago 2022": (lambda: tensor_of(real_data.chicago_2022()), 10),
    "planted, 1 M nonzeros": (planted, 20),
}


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "solver mm, and bursts of passes", 1)
    for name, (make, rank) in DATA.items():
        X = make()
        problem = Problem.build(X, rank, "poisson")
        seeds = SEEDS[: 1 if quick else None]
        ratios, slow, quick_ones = [], [], []
        for seed in seeds:
            start = fit(X, rank, "poisson", solver=sparse_start, random_state=seed, n_threads=1)
            loss, seconds = ended(X, rank, start.model.factors, PASSES)
            soon = seconds_to(problem, stack(start.model.factors), loss)
            slow.append(seconds)
            quick_ones.append(soon)
            ratios.append(seconds / soon)
        figures = {"mm, s": Spread.of(slow), "bursts, s": Spread.of(quick_ones)}
        yield Row(
            "To the loss of 500 passes", {"data": name, **figures, "ratio": Spread.of(ratios)}
        )
        yield Verdict(f"{name}: times as fast as mm", float(np.median(ratios)), 5)
        for count in COMPARED:
            yield Row("Mean loss after passes", {"data": name, **compared(problem, count, seeds)})


def ended(X: SparseTensor, rank: int, factors: list[np.ndarray], n: int) -> tuple[float, float]:
    """Where `mm` ends after some passes, and how long they take."""
    began = time.perf_counter()
    found = fit(X, rank, "poisson", solver="mm", init=factors, tol=0.0, max_epochs=n, n_threads=1)
    return found.loss, time.perf_counter() - began


def seconds_to(problem: Problem, A: np.ndarray, loss: float) -> float:
    """The time that bursts and careful passes need to a loss; infinite where they end above it."""
    storage = problem.stored_as(SparseTensor)
    bursts, mixture = Bursts.over(storage, problem.loss), Mixture.of(A, problem.shape)
    bursts.improved(mixture, 1, 0.0)
    began = time.perf_counter()
    for _ in range(PASSES // A_BURST):
        _, mixture = bursts.improved(mixture, A_BURST, 0.0)
        passes, careful = Passes.over(problem, 1), mixture
        for _ in range(CAREFUL):
            found, careful = passes.step(careful)
            if found <= loss:
                return time.perf_counter() - began
    return np.inf


def compared(problem: Problem, n_passes: int, seeds: range) -> dict[str, object]:
    """Mean losses of both ways after some passes from random starts."""
    X = problem.stored_as(SparseTensor)
    held, free = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        A = stack(marginal_factors(problem, problem.rank, rng))
        bursts = Bursts.over(X, problem.loss)
        total, _ = bursts.improved(Mixture.of(A, problem.shape), n_passes, 0.3)
        held.append(total / X.n_observed)
        free.append(ended(X, problem.rank, unstack(A, problem.shape), n_passes)[0])
    return {"passes": n_passes, "mm": float(np.mean(free)), "bursts": float(np.mean(held))}
