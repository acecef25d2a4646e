"""The peers, each from a given start on sparse data: how low is the exact loss after how long.

How they are called and timed is in `smartcpd._app.paper.peers`; here the exact losses of what they
had on their way are taken, after they have ended.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmarks.results import Method
from smartcpd._app.paper import peers
from smartcpd._app.paper.contenders import Factors, Snapshot
from smartcpd._app.paper.peers import SparseData, start_for

__all__ = ["PeerRun", "genten_lbfgsb", "genten_sgd", "pyttb_adam", "pyttb_apr", "start_for"]

EPOCHS = (5, 10, 20, 30, 40, 60, 80, 100)  # that GenTen's sampled fits are limited to
EPS = 1e-9  # added to the model inside logarithms
BLOCK = 1 << 17  # nonzeros looked at together


@dataclass(frozen=True)
class PeerRun:
    """What a peer did: its settings, and (seconds, exact mean loss over all cells) on its way."""

    description: str
    trace: list[tuple[float, float]]

    @classmethod
    def of(
        cls, description: str, snapshots: list[Snapshot], data: SparseData, loss: str
    ) -> PeerRun:
        trace = []
        for shot in snapshots:
            # GenTen tells its losses but not the factors.
            known = shot.loss if shot.factors is None else MEAN_LOSS[loss](data, shot.factors)
            trace.append((shot.time, known))
        return cls(description, trace)

    @property
    def name(self) -> str:
        """The description without settings."""
        return ", ".join(self.description.split(", ")[:2])

    @property
    def seconds(self) -> float:
        return self.trace[-1][0]

    @property
    def loss(self) -> float:
        return self.trace[-1][1]

    def seconds_to(self, target: float) -> float:
        """When the loss first was at most the target; infinity if never."""
        return min((s for s, loss in self.trace if loss <= target), default=math.inf)


def log_at_nonzeros(data: SparseData, factors: Factors) -> float:
    """Sum of x log(m + EPS)."""
    total = 0.0
    for first in range(0, len(data.values), BLOCK):
        block = slice(first, first + BLOCK)
        rows = factors[0][data.indices[block, 0]]
        for n in range(1, len(factors)):
            rows = rows * factors[n][data.indices[block, n]]
        total += float(data.values[block] @ np.log(rows.sum(axis=1) + EPS))
    return total


def mean_poisson(data: SparseData, factors: Factors) -> float:
    expected = np.prod([A.sum(axis=0) for A in factors], axis=0).sum()
    return float(expected - log_at_nonzeros(data, factors)) / data.n_cells


def mean_bernoulli_odds(data: SparseData, factors: Factors) -> float:
    """Visits every cell, one slice of mode 0 at a time."""
    first, *middle, last = factors
    K = np.ones((1, last.shape[1]))
    for A in middle:
        K = (K[:, None] * A).reshape(-1, K.shape[1])
    every = sum(float(np.log1p((K * row) @ last.T).sum()) for row in first)
    return (every - log_at_nonzeros(data, factors)) / data.n_cells


MEAN_LOSS = {"poisson": mean_poisson, "bernoulli-odds": mean_bernoulli_odds}


def pyttb_apr(
    data: SparseData,
    start: Factors,
    algorithm: Literal["mu", "pdnr", "pqnr"],
    max_seconds: float = 120.0,
    **settings: Any,
) -> PeerRun:
    """cp_apr, Poisson. (pqnr fails with an assertion of its own on Chicago 2022.)"""
    found = peers.pyttb_apr(data, start, algorithm, max_seconds, **settings)
    return PeerRun.of(described(f"pyttb cp_apr {algorithm}", settings), found, data, "poisson")


def pyttb_adam(
    data: SparseData,
    start: Factors,
    loss: str,
    rate: float,
    max_seconds: float = 120.0,
    seed: int = 0,
    on_its_way: bool = True,
) -> PeerRun:
    """gcp_opt with Adam and its default stratified sampler."""
    found = peers.pyttb_adam(data, start, loss, rate, max_seconds, seed, on_its_way)
    name = f"pyttb gcp_opt, Adam, rate={rate:g}, stratified, defaults"
    return PeerRun.of(name, found, data, loss)


def pyttb_lbfgsb(
    data: SparseData,
    start: Factors,
    loss: str,
    max_seconds: float = 120.0,
    iterations: int = 1000,
) -> PeerRun:
    """gcp_opt with L-BFGS-B on the exact loss of the dense array, looked at after every step."""
    dense = np.zeros(data.shape)
    dense[tuple(data.indices.T)] = data.values
    found = peers.pyttb_lbfgsb(dense, start, loss, max_seconds, iterations)
    name = described("pyttb gcp_opt, L-BFGS-B", {"maxiter": iterations})
    return PeerRun.of(name, found, data, loss)


def genten_lbfgsb(
    data: SparseData, start: Factors, max_iterations: int = 1000, **settings: Any
) -> PeerRun:
    """cp_opt, L-BFGS-B on the exact Poisson loss."""
    found = peers.genten_lbfgsb(data, start, max_iterations, **settings)
    name = described("GenTen cp_opt, L-BFGS-B", {**peers.GENTEN_LBFGSB, **settings, **threads()})
    return PeerRun.of(name, found, data, "poisson")


def genten_sgd(
    data: SparseData,
    start: Factors,
    loss: str,
    max_seconds: float = 120.0,
    epochs: Sequence[int] = EPOCHS,
    **settings: Any,
) -> PeerRun:
    """gcp_sgd with Adam, separate calls with growing limits."""
    found = peers.genten_sgd(data, start, loss, max_seconds, epochs, **settings)
    name = described("GenTen gcp_sgd, Adam", {**peers.GENTEN_SGD, **settings, **threads()})
    return PeerRun.of(name, found, data, loss)


def genten_method(settings: str) -> Method:
    return Method("pygenten", settings, str(threads()["threads"]))


def threads() -> dict[str, Any]:
    """What OpenMP gives GenTen; it has no setting of its own."""
    return {"threads": os.environ.get("OMP_NUM_THREADS", os.cpu_count())}


def described(name: str, settings: dict[str, Any]) -> str:
    return ", ".join([name, *(f"{key}={value}" for key, value in settings.items())])
