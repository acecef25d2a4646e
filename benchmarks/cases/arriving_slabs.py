"""Twenty slabs that arrive one after the other: partial_fit next to a new fit at each arrival.

The mean loss of all data under the last model is compared with that of a fit of all data, relative
to the size of the latter. Times are of all twenty arrivals, the first fit included in both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, datasets
from smartcpd._common import threads

SEEDS = range(971_000, 971_005)
SLABS = 20
KINDS = {"poisson": datasets.count, "gamma": datasets.gamma, "gaussian": datasets.gaussian}
CASES = {
    **{loss: (loss, (1000, 60, 50), 5) for loss in KINDS},
    "poisson, thin": ("poisson", (100, 60, 50), 6),
    "poisson, single slices": ("poisson", (20, 60, 50), 5),
}
"""Loss, shape and rank; of the last two, slabs are too few cells to be fitted alone."""
EXCESS, FASTER = 0.01, 10.0


def refits(X: np.ndarray, ends: list[int], rank: int, loss: str, seed: int) -> tuple[float, float]:
    """The seconds of all fits, and the loss of the last one."""
    began = time.perf_counter()
    for end in ends:
        fit = SmartCPD(rank, loss, random_state=seed).fit(X[:end])
    return time.perf_counter() - began, fit.loss_


def arrivals(
    X: np.ndarray, ends: list[int], rank: int, loss: str, seed: int
) -> tuple[float, float]:
    """The seconds of all arrivals, and the loss of all data under the last model."""
    began = time.perf_counter()
    fit, start = SmartCPD(rank, loss, random_state=seed), 0
    for end in ends:
        fit.partial_fit(X[start:end])
        start = end
    return time.perf_counter() - began, fit.model_.loss(X)


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    for label, (loss, shape, rank) in CASES.items():
        ends = np.linspace(0, shape[0], SLABS + 1).astype(int)[1:].tolist()
        excess, faster, ours, theirs = [], [], [], []
        for seed in SEEDS[:1] if quick else SEEDS:
            X, _ = KINDS[loss](shape, rank, random_state=seed)
            for compiled in (refits, arrivals):
                compiled(X[: 2 * ends[0]], [ends[0], 2 * ends[0]], rank, loss, seed)
            slow, best = refits(X, ends, rank, loss, seed)
            fast, reached = arrivals(X, ends, rank, loss, seed)
            excess.append((reached - best) / abs(best))
            faster.append(slow / fast)
            ours.append(fast)
            theirs.append(slow)
        yield Row(
            "A mode that grows",
            {
                "data": f"{label}, {'x'.join(map(str, shape))}, rank {rank}, {SLABS} slabs",
                "partial_fit, s": Spread.of(ours),
                "refits, s": Spread.of(theirs),
                "times faster": Spread.of(faster),
                "excess loss, relative": Spread.of(excess),
            },
        )
        yield Verdict(f"{label}: largest excess loss", max(excess), EXCESS, at_most=True)
        if label in KINDS:
            yield Verdict(f"{label}: times faster, median", statistics.median(faster), FASTER)
