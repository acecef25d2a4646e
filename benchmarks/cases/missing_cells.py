"""Default fits of dense counts of which 30 % of the cells are missing, 20 fresh seeds.

A fit is good if its factors are within 1.1 times the error of the optimum that is reached from the
true factors with the same cells missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import verdict
from benchmarks.oracle import oracle
from benchmarks.planted import Outcome, compiled, count
from smartcpd import SmartCPD, metrics

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
    confirmed = fit.status_.converged and "Not confirmed" not in fit.status_.reason
    return Outcome(seconds, fit.loss_ - best.loss(X, mask=mask), ratio, confirmed)


def run(seeds: range = SEEDS) -> Iterator[str]:
    compiled(KIND)
    outcome(0)
    found = [outcome(seed) for seed in seeds]
    good = sum(f.good for f in found)
    seconds = [f.seconds for f in found]
    yield (
        f"{KIND.name}, {MISSING:.0%} missing: {np.median(seconds):.3f} s "
        f"({min(seconds):.3f}-{max(seconds):.3f}); excess loss up to "
        f"{max(f.excess for f in found):.1e}; error of the factors "
        f"{np.median([f.ratio for f in found]):.3f}x (at most {max(f.ratio for f in found):.3f}x)"
    )
    yield verdict(f"{KIND.name}: good of {len(found)}", good, GOOD * len(found) / len(SEEDS))
