"""How the time to an error of 3e-3 grows with a dense tensor of counts, rank 10, to 10⁹ cells.

The largest is read from a memory-mapped file.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.cases.dense_peers import Reached
from benchmarks.harness import verdict
from smartcpd import SmartCPD, datasets

SIZES, AIM, SEEDS = (100, 200, 400, 1000), 3e-3, (950_000, 950_001, 950_002)


def seconds_to_aim(X: np.ndarray, truth: list[np.ndarray], seed: int) -> float:
    reached = Reached(truth, AIM)

    def look(report: object) -> bool:
        reached.look(report.model().factors)  # type: ignore[attr-defined]
        return bool(np.isfinite(reached.aimed))

    SmartCPD(10, "poisson", random_state=seed, callback=look).fit(X)
    return reached.aimed


def run() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        times = {}
        for size in SIZES:
            X, truth = datasets.count((size,) * 3, 10, random_state=SEEDS[0])
            path = Path(folder) / f"{size}.npy"
            np.save(path, X.astype(np.uint8))
            del X
            data = np.load(path, mmap_mode="r")
            if size in (100, 200):
                SmartCPD(10, "poisson", max_epochs=3).fit(data)
            seconds = [seconds_to_aim(data, truth, seed) for seed in SEEDS]
            times[size] = statistics.median(seconds)
            yield f"{size}³: {times[size]:.3f} s ({min(seconds):.3f}-{max(seconds):.3f})"
            path.unlink()
        for size in SIZES[1:]:
            cells = (size / SIZES[0]) ** 3
            yield verdict(
                f"{size}³ against {SIZES[0]}³, {cells:g} times the cells",
                times[size] / times[SIZES[0]],
                math.sqrt(cells),
                at_most=True,
            )
