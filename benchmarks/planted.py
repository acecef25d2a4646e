"""Planted dense data of many kinds, and how near to the optimum of each seed a fit ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.oracle import oracle
from smartcpd import SmartCPD, datasets, metrics
from smartcpd._problem.history import Status
from smartcpd.datasets import Planted
from smartcpd.losses import get

CUBE = (100, 100, 100)


@dataclass(frozen=True)
class Kind:
    """A family of data sets, a seed each."""

    name: str
    rank: int
    loss: str
    make: Callable[[int], Planted]
    parameters: dict[str, Any] = field(default_factory=dict)


def count(rank: int, shape: tuple[int, ...] = CUBE, a_max: float = 0.5) -> Kind:
    def make(seed: int) -> Planted:
        return datasets.count(shape, rank, a_max=a_max, random_state=seed)

    return Kind(f"count {sizes(shape)} R={rank}, factors to {a_max:g}", rank, "poisson", make)


def binary(rank: int, a_max: float) -> Kind:
    def make(seed: int) -> Planted:
        return datasets.binary(CUBE, rank, a_max=a_max, random_state=seed)

    return Kind(f"binary {sizes(CUBE)} R={rank}, A_max={a_max:g}", rank, "bernoulli-odds", make)


def gamma(rank: int, size: int) -> Kind:
    def make(seed: int) -> Planted:
        return datasets.gamma((size,) * 3, rank, snr=20.0, random_state=seed)

    return Kind(f"gamma {sizes((size,) * 3)} R={rank}, 20 dB", rank, "gamma", make)


def collinear(rank: int, cosine: float = 0.9) -> Kind:
    """Counts whose columns have about this cosine with each other, in every mode."""

    def make(seed: int) -> Planted:
        rng = np.random.default_rng(seed)
        factors = []
        for size in CUBE:
            # Uniform columns have the cosine 3/4; a common one brings them together.
            own = rng.random((size, rank))
            common = rng.random((size, 1))
            low, high = 0.0, 20.0
            for _ in range(40):
                share = 0.5 * (low + high)
                A = own + share * common
                unit = A / np.linalg.norm(A, axis=0)
                mean = (unit.T @ unit)[np.triu_indices(rank, 1)].mean()
                low, high = (share, high) if mean < cosine else (low, share)
            factors.append(A / A.mean())
        m = np.einsum("ir,jr,kr->ijk", *factors)
        data = get("poisson").simulate(m, rng)
        return Planted(data.astype(np.min_scalar_type(int(data.max()))), factors)

    return Kind(f"count, columns with cosine {cosine:g}, R={rank}", rank, "poisson", make)


def sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


@dataclass(frozen=True)
class Outcome:
    """A default fit next to the optimum reached from the true factors."""

    seconds: float
    excess: float
    ratio: float
    """Of the errors of the factors."""
    sure: bool
    """Whether it says nothing of doubts."""

    @property
    def good(self) -> bool:
        return self.ratio <= 1.1


def outcome(kind: Kind, seed: int) -> Outcome:
    X, truth = kind.make(seed)
    began = time.perf_counter()
    fit = SmartCPD(kind.rank, kind.loss, random_state=seed).fit(X)
    seconds = time.perf_counter() - began
    best = oracle(X, truth, kind.loss)
    ratio = metrics.factor_mse(fit.model_, truth) / metrics.factor_mse(best, truth)
    return Outcome(seconds, fit.loss_ - best.loss(X), ratio, is_sure(fit.status_))


def is_sure(status: Status) -> bool:
    doubts = ("Not confirmed", "does not decide")
    return status.converged and not any(words in status.reason for words in doubts)


def compiled(kind: Kind) -> None:
    """Everything that a fit of this kind needs is compiled."""
    X, _ = kind.make(0)
    SmartCPD(kind.rank, kind.loss, random_state=0, max_epochs=60).fit(X[(slice(20),) * X.ndim])
    # To its end, which has a phase of its own.
    SmartCPD(kind.rank, kind.loss, random_state=0).fit(X)
