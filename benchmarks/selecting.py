"""Planted data of known rank and loss, and whether `smartcpd.select` finds both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import smartcpd
from benchmarks.results import Row, Spread, Verdict
from smartcpd import datasets

SHAPE = (60, 50, 40)
ONES = 0.4
SNR = 20.0
MOST_SECONDS = 180.0


@dataclass(frozen=True)
class Kind:
    """A family of data sets: a rank and a seed each."""

    name: str
    ranks: range
    loss: str
    make: Callable[[int, int], np.ndarray]

    def rank(self, number: int) -> int:
        """The ranks in turn."""
        return self.ranks[number % len(self.ranks)]


def count(rank: int, seed: int) -> np.ndarray:
    return datasets.count(SHAPE, rank, random_state=seed).data


def overdispersed(rank: int, seed: int, r: float = 2.0) -> np.ndarray:
    """Negative-binomial counts with the means of `count`."""
    m = np.einsum("ir,jr,kr->ijk", *datasets.count(SHAPE, rank, random_state=seed).factors)
    return np.random.default_rng(seed).negative_binomial(r, r / (r + m))


def gamma(rank: int, seed: int) -> np.ndarray:
    return datasets.gamma(SHAPE, rank, snr=SNR, random_state=seed).data


def gaussian(rank: int, seed: int) -> np.ndarray:
    """Additive noise that leaves all values positive, so that they could be of any loss."""
    rng = np.random.default_rng(seed)
    m = np.einsum("ir,jr,kr->ijk", *(rng.uniform(0.5, 1.5, (n, rank)) for n in SHAPE))
    noise = 10 ** (-SNR / 20) * np.sqrt(np.square(m).mean()) * rng.standard_normal(SHAPE)
    return np.abs(m + noise)


def binary(rank: int, seed: int) -> np.ndarray:
    """With the size of factors that gives 40 % ones."""
    low, high = 0.1, 10.0
    for _ in range(40):
        a_max = (low * high) ** 0.5
        X = datasets.binary(SHAPE, rank, a_max=a_max, random_state=seed).data
        low, high = (a_max, high) if X.mean() < ONES else (low, a_max)
    return X


COUNT = Kind("count", range(3, 11), "poisson", count)
OVERDISPERSED = Kind("count, overdispersed (r=2)", range(3, 11), "negative-binomial", overdispersed)
GAMMA = Kind("gamma, 20 dB", range(3, 11), "gamma", gamma)
GAUSSIAN = Kind("positive, additive noise, 20 dB", range(3, 11), "gaussian", gaussian)
BINARY = Kind("binary, 40 % ones", range(2, 6), "bernoulli-odds", binary)


@dataclass(frozen=True)
class Outcome:
    planted: int
    rank: int
    loss: str
    seconds: float


def outcomes(kind: Kind, seeds: Sequence[int]) -> list[Outcome]:
    """What `select` finds on fresh data; compilation is not on its clock."""
    X = kind.make(2, 0)
    smartcpd.select(X, [1, 2], cv=2, n_restarts=1, random_state=0)
    found = []
    for number, seed in enumerate(seeds):
        planted = kind.rank(number)
        X = kind.make(planted, seed)
        began = time.perf_counter()
        selection = smartcpd.select(X, random_state=seed)
        seconds = time.perf_counter() - began
        found.append(Outcome(planted, selection.rank, selection.loss.name, seconds))
    return found


def row(kind: Kind, found: Sequence[Outcome]) -> Row:
    missed = [f"{o.planted} as {o.rank}" for o in found if o.rank != o.planted]
    return Row(
        "Planted ranks and losses",
        {
            "data": f"{kind.name}, ranks {kind.ranks[0]} to {kind.ranks[-1]}",
            "rank found": f"{len(found) - len(missed)} of {len(found)}",
            "other ranks": ", ".join(missed),
            "loss found": f"{sum(o.loss == kind.loss for o in found)} of {len(found)}",
            "seconds": Spread.of([o.seconds for o in found]),
        },
    )


def exact(kind: Kind, found: Sequence[Outcome], share: float) -> Verdict:
    label = f"{kind.name}: planted rank found, of {len(found)}"
    return Verdict(label, sum(o.rank == o.planted for o in found), share * len(found))


def right_loss(kind: Kind, found: Sequence[Outcome], share: float) -> Verdict:
    label = f"{kind.name}: generating loss chosen, of {len(found)}"
    return Verdict(label, sum(o.loss == kind.loss for o in found), share * len(found))


def in_time(kind: Kind, found: Sequence[Outcome]) -> Verdict:
    slowest = max(o.seconds for o in found)
    return Verdict(f"{kind.name}: seconds of the slowest", slowest, MOST_SECONDS, at_most=True)
