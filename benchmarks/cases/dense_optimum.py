"""Default fits of planted dense data, 20 seeds that no choice was made on (gamma 300³: 10).

A fit is good if its factors are within 1.1 times the error of the optimum reached from the true
factors; on the paper's count case its loss must also be within 1e-5 of that optimum's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.planted import Kind, binary, collinear, compiled, count, gamma, outcome
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd._common import threads

SEEDS = range(910_000, 910_020)
CASES: tuple[tuple[Kind, int, int, float | None], ...] = (
    (count(10), 20, 19, 0.2),
    (count(20), 20, 19, 0.25),
    (count(50), 20, 19, 0.6),
    (binary(20, 0.3), 20, 19, None),
    (binary(20, 0.5), 20, 19, None),
    (count(10, (30, 30, 30, 30)), 20, 18, None),
    (count(15, (60, 150, 40), a_max=1.5), 20, 18, None),
    (collinear(8), 20, 18, None),
    (count(20, (100, 100, 10)), 20, 18, None),
    (gamma(20, 100), 10, 9, None),
    (gamma(20, 300), 10, 9, None),
)
"""What, on how many seeds, how many must be good, and at most in how many seconds."""


def run() -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    for kind, n_seeds, needed, limit in CASES:
        compiled(kind)
        found = [outcome(kind, seed) for seed in SEEDS[:n_seeds]]
        good = sum(f.good and (limit is None or f.excess <= 1e-5) for f in found)
        seconds = np.array([f.seconds for f in found])
        worst = max(found, key=lambda f: f.ratio)
        bad = [f for f in found if not f.good]
        said = sum(not f.sure for f in bad)
        doubted = sum(f.good and not f.sure for f in found)
        lower = sum(f.excess < 0 for f in bad)
        yield Row(
            "Default fits",
            {
                "data": kind.name,
                "s": Spread.of(list(seconds)),
                "largest excess loss": max(f.excess for f in found),
                "worst error, times the optimum's": worst.ratio,
                "not good": len(bad),
                "of which say so": said,
                "of which have a lower loss": lower,
                "good, in doubt": doubted,
            },
        )
        yield Verdict(f"{kind.name}: good of {n_seeds}", good, needed)
        if limit is not None:
            yield Verdict(f"{kind.name}: median s", float(np.median(seconds)), limit, at_most=True)
