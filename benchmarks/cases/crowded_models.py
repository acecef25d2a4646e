"""More components than a mode has rows: solutions kept by their loss alone, or by how probable they
are where losses do not tell them apart.

Errors of the factors are relative to those of the optimum reached from the true ones, which is not
always the lowest. Without the second rule the same fits end at the lowest loss that was found.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.planted import Outcome, compiled, count, outcome
from benchmarks.results import Method, Result, Row, Spread
from smartcpd._common import threads

CASES = ((count(10, (60, 50, 6), a_max=0.6), 30), (count(20, (100, 100, 10)), 10))
SEED = 941_000


def run() -> Iterator[Result]:
    yield Method("smartcpd", "defaults, with and without the second rule", threads.resolve(None))
    for kind, n_seeds in CASES:
        compiled(kind)
        probable, lowest = [], []
        for seed in range(SEED, SEED + n_seeds):
            probable.append(outcome(kind, seed))
            with _lowest_loss():
                lowest.append(outcome(kind, seed))
        for rule, found in (("lowest loss", lowest), ("more probable by far", probable)):
            yield Row("Kept", {"data": kind.name, "rule": rule, **_told(found)})


def _told(found: list[Outcome]) -> dict[str, object]:
    ratios = [f.ratio for f in found]
    return {
        "error, times the optimum's": Spread.of(ratios),
        "geometric mean": math.exp(float(np.mean(np.log(ratios)))),
        "above 1.1": f"{sum(not f.good for f in found)} of {len(found)}",
        "largest excess loss": max(f.excess for f in found),
        "s": Spread.of([f.seconds for f in found]),
    }


@contextmanager
def _lowest_loss() -> Iterator[None]:
    """Nothing is ever more probable by far."""
    core = importlib.import_module("smartcpd._strategies.dense")
    before, core.DECISIVE = core.DECISIVE, math.inf
    try:
        yield
    finally:
        core.DECISIVE = before
