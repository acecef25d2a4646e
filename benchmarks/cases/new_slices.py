"""The rows that transform finds for the slices of a fit, next to those of the fit.

Distances are relative to the largest entry of a column, the largest over rows. A default fit ends
with exact rows in its first mode; in the others it stops where what is left is small next to
statistical uncertainty. Fits that go on to a small KKT residual show what transform itself leaves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import CPModel, SmartCPD, datasets
from smartcpd._common import threads

SEEDS = range(970_000, 970_005)
SHAPE, RANK = (100, 60, 40), 5
KINDS = {
    "poisson": datasets.count,
    "gamma": datasets.gamma,
    "gaussian": datasets.gaussian,
    "bernoulli-odds": datasets.binary,
    "poisson, sparse": lambda shape, rank, random_state: datasets.events(
        shape, rank, n_events=20_000, random_state=random_state
    ),
}
CLOSE = 1e-4
CONVERGED = {"tol": 0, "kkt_tol": 1e-8, "max_epochs": 20_000, "solver": "lbfgs"}


def distances(model: CPModel, X) -> list[float]:
    """Of the rows of all slices, mode by mode."""
    pairs = ((model.transform(X, mode), B) for mode, B in enumerate(model.factors))
    return [float(np.max(np.abs(A - B) / np.abs(B).max(axis=0))) for A, B in pairs]


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults, and fits continued to convergence", threads.resolve(None))
    worst = 0.0
    for kind, make in KINDS.items():
        loss = kind.split(",")[0]
        first, others, close, seconds = [], [], [], []
        for seed in SEEDS[:1] if quick else SEEDS:
            X, _ = make(SHAPE, RANK, random_state=seed)
            fit = SmartCPD(RANK, loss, random_state=seed).fit(X)
            found = distances(fit.model_, X)
            first.append(found[0])
            others.append(max(found[1:]))
            further = SmartCPD(RANK, loss, init=fit.model_, random_state=seed, **CONVERGED).fit(X)
            began = time.perf_counter()
            close.append(max(distances(further.model_, X)))
            seconds.append(time.perf_counter() - began)
        worst = max(worst, *first)
        yield Row(
            "Distance of rows from those of the fit",
            {
                "loss": kind,
                "shape": "x".join(map(str, SHAPE)),
                "default fit, first mode": Spread.of(first),
                "other modes": Spread.of(others),
                "converged fit, all modes": Spread.of(close),
                "seconds for all modes": Spread.of(seconds),
            },
        )
    yield Verdict("largest distance, first mode of default fits", worst, CLOSE, at_most=True)
