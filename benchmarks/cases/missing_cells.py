"""Default fits of dense counts of which 30 % of the cells are missing, 20 fresh seeds.

A fit is good if its factors are within 1.1 times the error of the optimum that is reached from the
true factors with the same cells missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.oracle import oracle
from benchmarks.planted import Outcome, compiled, count, is_sure
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, metrics
from smartcpd._common import threads

SEEDS = range(980_000, 980_020)
MISSING = 0.3
GOOD = 18
KIND = count(10)


def outcome(seed: int) -> Outcome:
    """A default fit of what is left of a data set, next to the optimum near the truth."""
    X, truth = KIND.make(seed)
    mask = np.random.default_rng(seed).random(X.shape) >= MISSING
    data = np.where(mask, X, np.nan)
    began = time.perf_counter()
    fit = SmartCPD(KIND.rank, KIND.loss, random_state=seed).fit(data)
    seconds = time.perf_counter() - began
    best = oracle(X, truth, KIND.loss, mask=mask)
    ratio = metrics.factor_mse(fit.model_, truth) / metrics.factor_mse(best, truth)
    excess = fit.loss_ - best.loss(X, mask=mask)
    return Outcome(seconds, excess, ratio, is_sure(fit.status_))


def run(quick: bool = False) -> Iterator[Result]:
    seeds = SEEDS[:2] if quick else SEEDS
    yield Method("smartcpd", "defaults", threads.resolve(None))
    compiled(KIND)
    outcome(0)
    found = [outcome(seed) for seed in seeds]
    good = sum(f.good for f in found)
    yield Row(
        "Fits with missing cells",
        {
            "data": f"{KIND.name}, {MISSING:.0%} missing",
            "good": f"{good} of {len(found)}",
            "seconds": Spread.of([f.seconds for f in found]),
            "error, times the optimum's": Spread.of([f.ratio for f in found]),
            "excess loss, at most": max(f.excess for f in found),
        },
    )
    yield Verdict(f"good of {len(found)}", good, GOOD * len(found) / len(SEEDS))
