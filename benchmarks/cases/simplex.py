"""Columns on the simplex, 100x100x100, rank 10: the default fit against block mirror descent."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.cases.dense_peers import Reached
from benchmarks.results import Bars, Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, datasets, metrics
from smartcpd._common import threads
from smartcpd._fitting.found import Report

SEEDS = range(940_000, 940_005)
AIM, EVENTS, LIMIT = 1e-3, 10_000_000, 60.0


def fitted(
    X: np.ndarray, truth: list[np.ndarray], solver: str, seed: int, limit: float = LIMIT
) -> tuple[Reached, float]:
    """When the aim was reached, and the error in the end."""
    reached = Reached(truth, AIM)

    def look(report: Report) -> bool:
        reached.watch(report)
        return solver == "md" and np.isfinite(reached.aimed)

    fit = SmartCPD(
        10,
        "poisson",
        constraint="simplex",
        solver=solver,
        random_state=seed,
        callback=look,
        max_time=limit,
        tol=0.0 if solver == "md" else 0.02,
    ).fit(X)
    reached.end()
    return reached, metrics.factor_mse(fit.model_, truth)


def run(quick: bool = False) -> Iterator[Result]:
    n_threads = threads.resolve(None)
    yield Method("smartcpd", "defaults, constraint='simplex'", n_threads)
    yield Method("smartcpd", f"solver='md', tol=0, at most {LIMIT:g} s", n_threads)
    seeds = SEEDS[:1] if quick else SEEDS
    bars: dict[str, dict[str, float | Spread]] = {}
    for solver in ("auto", "md"):
        X, truth = datasets.simplex((20, 20, 20), 10, random_state=0)
        SmartCPD(10, "poisson", constraint="simplex", solver=solver, max_epochs=50).fit(X)
    for events in (None,) if quick else (None, EVENTS):
        name = "noiseless" if events is None else f"{events} events"
        ratios, errors, limits, times, aims = [], [], [], [], []
        for seed in seeds:
            X, truth = datasets.simplex(rank=10, events=events, random_state=seed)
            mine, error = fitted(X, truth, "auto", seed)
            theirs, _ = fitted(X, truth, "md", seed, 10.0 if quick else LIMIT)
            began = time.perf_counter()
            SmartCPD(10, "poisson", constraint="simplex", random_state=seed).fit(X)
            times.append(time.perf_counter() - began)
            best = SmartCPD(10, "poisson", constraint="simplex", solver="mm", init=truth).fit(X)
            errors.append(error)
            limits.append(metrics.factor_mse(best.model_, truth))
            aims.append((mine.aimed, min(theirs.aimed, theirs.whole)))
            ratios.append(aims[-1][1] / aims[-1][0])
        ours, md = (Spread.of(list(seconds)) for seconds in zip(*aims, strict=True))
        bars[name] = {"default": ours, "block mirror descent": md}
        yield Row(
            "Fits on the simplex",
            {
                "data": name,
                "whole fit, s": Spread.of(times),
                "worst error": max(errors),
                "from the truth": max(limits),
                f"to {AIM:g}, s": ours,
                "md, s": md,
                "times faster": Spread.of(ratios),
            },
        )
        if events is None:
            yield Verdict("worst error without noise", max(errors), 1e-6, at_most=True)
        yield Verdict(f"{name}: times faster than md", statistics.median(ratios), 10)
    yield Bars("aim", f"Time to an error of {AIM:g} on the simplex", "seconds", bars)
