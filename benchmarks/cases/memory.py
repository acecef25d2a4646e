"""Peak memory of a fit on a dense uint8 tensor of 1 GB."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.results import Method, Result, Row, Verdict

SHAPE = (1000, 1000, 1000)
FIT = f"""
import resource
import numpy as np
rng = np.random.default_rng(0)
X = np.empty({SHAPE}, dtype=np.uint8)
for i in range({SHAPE[0]}):
    X[i] = rng.integers(0, 4, {SHAPE[1:]}, dtype=np.uint8)
from smartcpd import SmartCPD
SmartCPD(20, "poisson", max_epochs=1, max_time=20).fit(X)
print(X.nbytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def run() -> Iterator[Result]:
    yield Method("smartcpd", "defaults, max_epochs=1", "all")
    out = subprocess.run([sys.executable, "-c", FIT], capture_output=True, text=True, check=True)
    tensor, peak = (int(word) for word in out.stdout.split())
    yield Row("MB", {"tensor": tensor / 1e6, "peak of the process": peak / 1e6})
    yield Verdict("peak beyond 1.3 tensors, MB", (peak - 1.3 * tensor) / 1e6, 200, at_most=True)
