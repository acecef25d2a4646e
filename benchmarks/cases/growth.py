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
from benchmarks.results import Lines, Method, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, datasets
from smartcpd._common import threads
from smartcpd._fitting.found import Report

SIZES, AIM, SEEDS = (100, 200, 400, 1000), 3e-3, (950_000, 950_001, 950_002)


def seconds_to_aim(X: np.ndarray, truth: list[np.ndarray], seed: int) -> float:
    reached = Reached(truth, AIM)

    def look(report: Report) -> bool:
        reached.watch(report)
        return bool(np.isfinite(reached.aimed))

    SmartCPD(10, "poisson", random_state=seed, callback=look).fit(X)
    return reached.aimed


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    sizes = SIZES[:2] if quick else SIZES
    with tempfile.TemporaryDirectory() as folder:
        times = {}
        for size in sizes:
            X, truth = datasets.count((size,) * 3, 10, random_state=SEEDS[0])
            path = Path(folder) / f"{size}.npy"
            np.save(path, X.astype(np.uint8))
            del X
            data = np.load(path, mmap_mode="r")
            if size in (100, 200):
                SmartCPD(10, "poisson", max_epochs=3).fit(data)
            seconds = [seconds_to_aim(data, truth, seed) for seed in SEEDS]
            times[size] = statistics.median(seconds)
            yield Row(f"Seconds to {AIM:g}", {"cells": size**3, "s": Spread.of(seconds)})
            path.unlink()
        line = [(float(size**3), seconds) for size, seconds in times.items()]
        as_the_root = [(n, line[0][1] * math.sqrt(n / line[0][0])) for n, _ in line]
        series = {"smartcpd": line, "√cells": as_the_root}
        title = f"Time to an error of {AIM:g}, counts, rank 10"
        yield Lines("seconds", title, "cells", "seconds", series, log="xy")
        for size in sizes[1:]:
            cells = (size / SIZES[0]) ** 3
            yield Verdict(
                f"{size}³ against {SIZES[0]}³, {cells:g} times the cells",
                times[size] / times[SIZES[0]],
                math.sqrt(cells),
                at_most=True,
            )
