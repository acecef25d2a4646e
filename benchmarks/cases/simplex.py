"""Columns on the simplex, 100x100x100, rank 10: the default fit against block mirror descent."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.cases.dense_peers import Reached
from benchmarks.harness import verdict
from smartcpd import SmartCPD, datasets, metrics

SEEDS = range(940_000, 940_005)
AIM, EVENTS, LIMIT = 1e-3, 10_000_000, 60.0


def fitted(X: np.ndarray, truth: list[np.ndarray], solver: str, seed: int) -> tuple[Reached, float]:
    """When the aim was reached, and the error in the end."""
    reached = Reached(truth, AIM)

    def look(report: object) -> bool:
        reached.look(report.model().factors)  # type: ignore[attr-defined]
        return solver == "md" and np.isfinite(reached.aimed)

    fit = SmartCPD(
        10,
        "poisson",
        constraint="simplex",
        solver=solver,
        random_state=seed,
        callback=look,
        max_time=LIMIT,
        tol=0.0 if solver == "md" else 0.02,
    ).fit(X)
    reached.end()
    return reached, metrics.factor_mse(fit.model_, truth)


def run() -> Iterator[str]:
    for solver in ("auto", "md"):
        X, truth = datasets.simplex((20, 20, 20), 10, random_state=0)
        SmartCPD(10, "poisson", constraint="simplex", solver=solver, max_epochs=50).fit(X)
    for events in (None, EVENTS):
        name = "noiseless" if events is None else f"{events} events"
        ratios, errors, limits, times = [], [], [], []
        for seed in SEEDS:
            X, truth = datasets.simplex(rank=10, events=events, random_state=seed)
            mine, error = fitted(X, truth, "auto", seed)
            theirs, _ = fitted(X, truth, "md", seed)
            began = time.perf_counter()
            SmartCPD(10, "poisson", constraint="simplex", random_state=seed).fit(X)
            times.append(time.perf_counter() - began)
            best = SmartCPD(10, "poisson", constraint="simplex", solver="mm", init=truth).fit(X)
            errors.append(error)
            limits.append(metrics.factor_mse(best.model_, truth))
            ratios.append(min(theirs.aimed, theirs.whole) / mine.aimed)
        yield (
            f"{name}: whole fit {statistics.median(times):.2f} s, error {max(errors):.1e} at worst "
            f"(from the truth: {max(limits):.1e}); to {AIM:g} against md: "
            f"{', '.join(f'{r:.0f}x' for r in ratios)}"
        )
        if events is None:
            yield verdict("worst error without noise", max(errors), 1e-6, at_most=True)
        yield verdict(f"{name}: times faster than md", statistics.median(ratios), 10)
