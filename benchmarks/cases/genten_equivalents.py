"""Calls of GenTen and what stands for them here: both find the same components.

Each call runs on planted data from a start of its own; smartcpd runs with its defaults. The mean
loss of both models is computed by the same function; components are the same where the factor match
score is 1.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import smartcpd
from benchmarks.results import Method, Result, Row, Verdict
from smartcpd import datasets
from smartcpd._app.paper.peers import genten, plain_factors

QUASI_NEWTON = {"maxiters": 1000, "ftol": 1e-12, "gtol": 1e-8}


@dataclass(frozen=True)
class Pair:
    """A call of GenTen's with the keywords that it needs, and the loss that stands for it."""

    call: str
    loss: str
    make: Callable[..., datasets.Planted]
    shape: tuple[int, ...]
    rank: int
    settings: dict[str, Any]
    sparse: bool = False

    @property
    def written(self) -> str:
        loss = self.settings.get("loss_function_type")
        kind = f', loss_function_type="{loss}"' if loss else ""
        return f"{self.call}(X, rank={self.rank}{kind})"


PAIRS = (
    Pair("cp_als", "gaussian", datasets.gaussian, (12, 10, 8), 3, {"maxiters": 1000, "tol": 1e-10}),
    Pair("cp_opt", "gaussian", datasets.gaussian, (12, 10, 8), 3, {"maxiters": 1000}),
    Pair(
        "cp_opt",
        "poisson",
        datasets.count,
        (30, 25, 20),
        3,
        {"loss_function_type": "poisson", "lower": 0.0, **QUASI_NEWTON},
        sparse=True,
    ),
    Pair(
        "gcp_sgd",
        "poisson",
        datasets.count,
        (30, 25, 20),
        3,
        {"loss_function_type": "poisson", "maxiters": 100},
        sparse=True,
    ),
    Pair(
        "gcp_sgd",
        "bernoulli-odds",
        datasets.binary,
        (60, 50, 40),
        3,
        {"loss_function_type": "bernoulli", "maxiters": 100},
        sparse=True,
    ),
    Pair(
        "gcp_opt",
        "bernoulli-odds",
        datasets.binary,
        (60, 50, 40),
        3,
        {"loss_function_type": "bernoulli", "maxiters": 1000},
    ),
    Pair(
        "gcp_opt",
        "gamma",
        datasets.gamma,
        (20, 18, 16),
        2,
        {"loss_function_type": "gamma", "maxiters": 1000},
    ),
    Pair(
        "gcp_opt",
        "rayleigh",
        datasets.gamma,
        (20, 18, 16),
        2,
        {"loss_function_type": "rayleigh", "maxiters": 1000},
    ),
)


def theirs(pair: Pair, X: np.ndarray) -> list[np.ndarray]:
    gt = genten()
    if pair.sparse:
        cells = np.ascontiguousarray(np.argwhere(X))
        data = gt.Sptensor(X.shape, cells.astype(np.uint64), X[tuple(cells.T)])
    else:
        data = gt.Tensor(np.asfortranarray(X))
    with contextlib.redirect_stdout(io.StringIO()):
        model, _, _ = getattr(gt, pair.call)(data, rank=pair.rank, printitn=0, **pair.settings)
    return plain_factors(model.weights, model.factor_matrices)


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", 1)
    yield Method("pygenten", "keywords of the table; lower=0 for cp_opt of counts", 1)
    for pair in PAIRS[:3] if quick else PAIRS:
        X = np.asarray(pair.make(pair.shape, pair.rank, random_state=0).data, dtype=float)
        fit = smartcpd.SmartCPD(pair.rank, pair.loss, random_state=0).fit(X)
        found = smartcpd.CPModel(theirs(pair, X), loss_function=pair.loss)
        match = smartcpd.metrics.factor_match_score(fit.model_, found)
        there = smartcpd.quality.measure(found, X).mean_loss
        here = smartcpd.quality.measure(fit.model_, X).mean_loss
        yield Row(
            "Calls",
            {
                "GenTen": pair.written,
                "smartcpd": f'decompose(X, {pair.rank}, "{pair.loss}")',
                "data": "x".join(map(str, pair.shape)) + (", sparse" if pair.sparse else ""),
                "its loss": there,
                "our loss": here,
                "factor match": match,
            },
        )
        yield Verdict(f"{pair.written}: factor match", match, 0.99)
