"""Mixed steps on gamma data (20 dB, R = 20) against Jensen steps and adagrad alone.

Five seeds that no choice was made on, 100³ (100 epochs) and 300³ (40 epochs), one thread. With the
package's defaults, each rule with the map that is chosen for it; and as published: the start
U(0, 1), no averaging, no merging, adagrad with the quadratic map, eta = 1 and b = 1e-5, the last
factors. After every epoch the factors that the fit would return are compared with the true ones.
Asked for are, seed by seed, no more entries to an error of 0.01 than Jensen steps read, at most 1.1
times as many as adagrad, and a lower error in the end than that of Jensen steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, datasets, metrics
from smartcpd._fitting.found import Report

RANK, SNR, AIM = 20, 20.0, 1e-2
SEEDS = range(4001, 4006)
EPOCHS = {100: 100, 300: 40}
SLACK = 1.1
RULES = ("jensen", "adagrad", "mixed")


class Ended(NamedTuple):
    """Entries read until the error was at most 0.01, and the error in the end."""

    entries: float
    error: float


def defaults(rule: str, seed: int, size: int) -> dict[str, Any]:
    return {"step": rule}


def published(rule: str, seed: int, size: int) -> dict[str, Any]:
    (rng,) = np.random.default_rng(seed).spawn(1)
    plain = {"init": [rng.random((size, RANK)) for _ in range(3)], "averaging": False}
    steps = {"step": "adagrad(1, 1e-5)", "mirror": "quadratic"} if rule == "adagrad" else {}
    return {"step": rule, "overcomplete": 1, "tol": 0, "n_fibers": 2 * RANK, **plain, **steps}


SETTINGS = {"defaults": defaults, "as published": published}


def descent(
    X: np.ndarray, truth: list[np.ndarray], seed: int, given: dict[str, Any], epochs: int
) -> Ended:
    """Run a fit and look at every epoch at what it would return."""
    reached, error = math.inf, math.inf
    returns_last = given.get("averaging") is False

    def look(report: Report) -> None:
        nonlocal reached, error
        if returns_last or report.is_best:
            model = report.model()
            if model.rank == RANK:
                error = metrics.factor_mse(model, truth)
                if error <= AIM:
                    reached = min(reached, report.record.entries)

    SmartCPD(
        RANK,
        "gamma",
        solver="smd",
        max_epochs=epochs,
        random_state=seed,
        n_threads=1,
        callback=look,
        progress=False,
        **given,
    ).fit(X)
    return Ended(reached, error)


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "solver='smd', step='jensen', 'adagrad' and 'mixed'", 1)
    for size in (100,) if quick else tuple(EPOCHS):
        seeds = SEEDS[:2] if quick else SEEDS
        found: dict[tuple[str, str], list[Ended]] = {}
        for seed in seeds:
            X, truth = datasets.gamma((size,) * 3, RANK, snr=SNR, random_state=seed)
            for setting, parameters in SETTINGS.items():
                for rule in RULES:
                    ended = descent(X, truth, seed, parameters(rule, seed, size), EPOCHS[size])
                    found.setdefault((setting, rule), []).append(ended)
        for setting in SETTINGS:
            yield from judged(f"{size}³, {setting}", {r: found[setting, r] for r in RULES})


def judged(case: str, found: dict[str, list[Ended]]) -> Iterator[Result]:
    """Yield a row for each rule, and on how many seeds each condition holds."""
    for rule, ended in found.items():
        cells = {
            "data": case,
            "steps": rule,
            "entries to 0.01": Spread.of([e.entries for e in ended]),
            "MSE in the end": Spread.of([e.error for e in ended]),
        }
        yield Row("Mixed steps", cells)
    jensen, adagrad, mixed = (found[rule] for rule in RULES)
    n = len(mixed)
    as_soon = sum(m.entries <= j.entries for m, j in zip(mixed, jensen, strict=True))
    near = sum(m.entries <= SLACK * a.entries for m, a in zip(mixed, adagrad, strict=True))
    lower = sum(m.error < j.error for m, j in zip(mixed, jensen, strict=True))
    yield Verdict(f"{case}: no more entries than Jensen, seeds of {n}", as_soon, n)
    yield Verdict(f"{case}: at most {SLACK:g} times adagrad's, seeds of {n}", near, n)
    yield Verdict(f"{case}: ends below Jensen's end, seeds of {n}", lower, n)
