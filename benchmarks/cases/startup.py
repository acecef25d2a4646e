"""Time to import, to compile at the first fit ever, and to the first epoch of a second process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import numpy as np

from benchmarks.results import Method, Remark, Result, Row, Spread, Verdict

IMPORT = """
import time
began = time.perf_counter()
from smartcpd import decompose
print(time.perf_counter() - began)
"""
FIT = """
import time
began = time.perf_counter()
from smartcpd import SmartCPD, datasets
X = datasets.count((100, 100, 100), 20, random_state=0).data
data = time.perf_counter()
def stop(report):
    if report.record.epoch == 1:
        print(time.perf_counter() - data, time.perf_counter() - began)
        return True
SmartCPD(20, "poisson", callback=stop).fit(X)
"""


def python(code: str, cache: str) -> tuple[list[float], str]:
    environment = dict(os.environ, NUMBA_CACHE_DIR=cache)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()], done.stderr


def run() -> Iterator[Result]:
    yield Method("smartcpd", "defaults, count 100³, rank 20", "all")
    with tempfile.TemporaryDirectory() as cache:
        imports = [python(IMPORT, cache)[0][0] for _ in range(5)]
        (first, _), said = python(FIT, cache)
        later = [python(FIT, cache) for _ in range(5)]
    second = [total for (_, total), _ in later]
    yield Row(
        "Seconds",
        {
            "import": Spread.of(imports),
            "first fit ever, to its first epoch": first,
            "second process, from import to first epoch": Spread.of(second),
        },
    )
    yield Verdict(
        "from smartcpd import decompose, seconds", float(np.median(imports)), 1, at_most=True
    )
    yield Verdict("first fit ever to its first epoch, seconds", first, 25, at_most=True)
    yield Remark(f"It says {said.strip()!r}; a second process says {later[0][1].strip()!r}.")
    yield Verdict(
        "second process, from import to first epoch (data made meanwhile), seconds",
        float(np.median(second)),
        2,
        at_most=True,
    )
