"""The paper's count case (100³), solver="smd" with defaults, 20 seeds no choice was made on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.oracle import oracle
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, datasets, metrics
from smartcpd._common import threads

N_ORACLES = 5
SEEDS = range(70_000, 70_020)
CASES = ((10, 1e-2, 18), (20, 1e-2, 18), (50, 2e-2, 16))
PAPER = {10: 2.7e-3, 20: 3.7e-3, 50: 6.6e-3}


def run() -> Iterator[Result]:
    yield Method("smartcpd", "solver='smd', defaults", threads.resolve(None))
    SmartCPD(2, "poisson", max_epochs=1).fit(datasets.count((20, 20, 20), 2).data)
    for rank, bound, needed in CASES:
        errors, seconds, limits = [], [], []
        for seed in SEEDS:
            X, truth = datasets.count(rank=rank, random_state=seed)
            began = time.perf_counter()
            fit = SmartCPD(rank, "poisson", solver="smd", random_state=seed).fit(X)
            seconds.append(time.perf_counter() - began)
            errors.append(metrics.factor_mse(fit.model_, truth))
            if len(limits) < N_ORACLES:
                limits.append(metrics.factor_mse(oracle(X, truth, "poisson"), truth))
        good = int(np.sum(np.array(errors) <= bound))
        yield Row(
            "factor_mse",
            {
                "rank": rank,
                "ours": Spread.of(errors),
                "mean": np.mean(errors),
                "paper, mean after 100 s": PAPER[rank],
                f"optimum from the truth, mean of {N_ORACLES}": np.mean(limits),
                "whole fit, s": Spread.of(seconds),
            },
        )
        yield Verdict(f"rank {rank}: seeds of 20 with factor_mse <= {bound:g}", good, needed)
