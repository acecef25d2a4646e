"""The rows that transform finds for the slices of a fit, next to those of the fit.

Distances are relative to the largest entry of a column, the largest over all modes and rows. A fit
stops where what is left is small next to its statistical uncertainty; fits that go on to a small
KKT residual show what transform itself leaves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import CPModel, SmartCPD, datasets, threads

SEEDS = range(970_000, 970_005)
SHAPE, RANK = (100, 60, 40), 5
KINDS = {
    "poisson": datasets.count,
    "gamma": datasets.gamma,
    "gaussian": datasets.gaussian,
    "bernoulli-odds": datasets.binary,
}
CLOSE = 1e-4
CONVERGED = {"tol": 0, "kkt_tol": 1e-8, "max_epochs": 20_000, "solver": "lbfgs"}


def distance(model: CPModel, X: np.ndarray) -> tuple[float, float]:
    """Of the rows of all slices, and the seconds it took to find them."""
    began = time.perf_counter()
    found = [model.transform(X, mode) for mode in range(model.order)]
    seconds = time.perf_counter() - began
    pairs = zip(found, model.factors, strict=True)
    return max(float(np.max(np.abs(A - B) / np.abs(B).max(axis=0))) for A, B in pairs), seconds


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults, and fits continued to convergence", threads.resolve(None))
    worst = 0.0
    for loss, make in KINDS.items():
        usual, close, seconds = [], [], []
        for seed in SEEDS[:1] if quick else SEEDS:
            X, _ = make(SHAPE, RANK, random_state=seed)
            fit = SmartCPD(RANK, loss, random_state=seed).fit(X)
            usual.append(distance(fit.model_, X)[0])
            further = SmartCPD(RANK, loss, init=fit.model_, random_state=seed, **CONVERGED).fit(X)
            found, took = distance(further.model_, X)
            close.append(found)
            seconds.append(took)
        worst = max(worst, *close)
        yield Row(
            "Distance of rows from those of the fit",
            {
                "loss": loss,
                "shape": "x".join(map(str, SHAPE)),
                "default fit": Spread.of(usual),
                "converged fit": Spread.of(close),
                "seconds for all modes": Spread.of(seconds),
            },
        )
    yield Verdict("largest distance, converged fits", worst, CLOSE, at_most=True)
