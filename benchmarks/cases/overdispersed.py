"""Counts that scatter more widely than Poisson ones: what does a fit that finds r cost?

Chicago's crimes and the trips of companies for hire, by day and by week and weekday, whose counts
are large and mostly 0. Fits under poisson and under negative-binomial(auto) take turns; the seconds
are the processor's, one thread. Then simulated counts with an r that is known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import real_data
from benchmarks.ours import tensor_of
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import CPModel, SmartCPD

LOSSES = ("poisson", "negative-binomial(auto)")
SLOWER, WITHIN = 5.0, 0.1
SIMULATED = ((0.4, 300.0), (0.4, 5.0), (1.5, 5.0), (1.5, 1.0), (5.0, 5.0), (5.0, 50.0))
"""r, and the mean of the counts."""


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", 1)
    real = {
        "trips, company x day": (real_data.fhv_trips, 3),
        "trips, company x week x weekday": (lambda: real_data.fhv_trips(weeks=True), 3),
        "Chicago 2022": (real_data.chicago_2022, 10),
    }
    for name, (make, rank) in list(real.items())[: 1 if quick else None]:
        yield from compared(name, tensor_of(make()), rank, range(200, 202 if quick else 205))
    errors = []
    for r, mean in SIMULATED[: 2 if quick else None]:
        for seed in range(200, 201 if quick else 203):
            found, _ = timed(simulated(r, mean, seed), 3, LOSSES[1], seed)
            errors.append(abs(found.model_.loss_function.r / r - 1))
    yield Row("Simulated counts", {"sets": len(errors), "error of r": Spread.of(errors)})
    held = sum(error <= WITHIN for error in errors)
    yield Verdict(f"r within {WITHIN:.0%}, sets of {len(errors)}", held, len(errors))


def compared(name: str, X: Any, rank: int, seeds: range) -> Iterator[Result]:
    """Yield the times of fits under both losses, and whether all of them ended."""
    for loss in LOSSES:
        timed(X, rank, loss, 0)
    fits = {seed: [timed(X, rank, loss, seed) for loss in LOSSES] for seed in seeds}
    plain, wide = zip(*fits.values(), strict=True)
    ratios = [b / a for (_, a), (_, b) in fits.values()]
    cells = {
        "data": name,
        "poisson, CPU s": Spread.of([seconds for _, seconds in plain]),
        "negative-binomial(auto), CPU s": Spread.of([seconds for _, seconds in wide]),
        "times as long": Spread.of(ratios),
        "r": Spread.of([fit.model_.loss_function.r for fit, _ in wide]),
    }
    yield Row("Counts of the world", cells)
    converged = sum(fit.status_.converged for fit, _ in wide)
    yield Verdict(f"{name}: times as long", float(np.median(ratios)), SLOWER, at_most=True)
    yield Verdict(f"{name}: fits that converged, of {len(wide)}", converged, len(wide))


def timed(X: Any, rank: int, loss: str, seed: int) -> tuple[SmartCPD, float]:
    began = time.process_time()
    fit = SmartCPD(rank, loss, random_state=seed, n_threads=1).fit(X)
    return fit, time.process_time() - began


def simulated(r: float, mean: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    expected = np.asarray(CPModel([rng.gamma(0.7, size=(n, 3)) for n in (40, 30, 20)]).full())
    expected *= mean / expected.mean()
    return rng.poisson(rng.gamma(r, expected / r)).astype(float)
