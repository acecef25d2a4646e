"""50 million nonzeros on disk, 60000x400x300, rank 10, fitted within 512 MB and in memory.

Planted counts, written in pieces as a folder of parts. Each fit has a process of its own; its peak
of memory is that beyond what the interpreter, the libraries and compiled code take.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import Method, Remark, Result, Row, Verdict
from smartcpd import datasets
from smartcpd.partitions import write_pieces

SHAPE, RANK = (60_000, 400, 300), 10
N_EVENTS, QUICK_EVENTS, PIECE = 56_000_000, 20_000_000, 4_000_000
MAX_MEMORY, QUICK_MEMORY = 512_000_000, 256_000_000
FIT = """
import json, sys, time
from smartcpd import SmartCPD, datasets, read

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

small, _ = datasets.events((300, 40, 30), 3, 20_000, random_state=0)
SmartCPD(3, "poisson", random_state=0).fit(small)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # compilation has a peak of its own
bare = peak()
began = time.perf_counter()
fit = SmartCPD(int(sys.argv[3]), "poisson", random_state=0, max_memory=int(sys.argv[2]))
fit.fit(read(sys.argv[1]))
seconds = time.perf_counter() - began
print(json.dumps({
    "solver": fit.solver_, "loss": fit.loss_, "s": seconds, "bytes": peak() - bare,
    "passes": fit.history_[-1].entries / fit.history_[0].entries, "status": fit.status_.reason,
}))
"""


def pieces(n_events: int, seed: int) -> Iterator[tuple[tuple[np.ndarray, ...], np.ndarray]]:
    """Events of one planted model, some at a time."""
    _, factors = datasets.events(SHAPE, RANK, 1, random_state=seed)
    up_to = [np.cumsum(A / A.sum(axis=0), axis=0) for A in factors]
    rng = np.random.default_rng(seed)
    for start in range(0, n_events, PIECE):
        sizes = rng.multinomial(min(PIECE, n_events - start), np.full(RANK, 1 / RANK))
        columns = []
        for sums in up_to:
            drawn = [
                np.searchsorted(sums[:, r], rng.random(n) * sums[-1, r])
                for r, n in enumerate(sizes)
            ]
            columns.append(np.minimum(np.concatenate(drawn), len(sums) - 1))
        yield tuple(columns), np.ones(columns[0].size, np.uint8)


def _fitted(path: Path, max_memory: int) -> dict[str, Any]:
    command = [sys.executable, "-c", FIT, str(path), str(max_memory), str(RANK)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", "all")
    allowed = QUICK_MEMORY if quick else MAX_MEMORY
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts.parts"
        X = write_pieces(path, pieces(QUICK_EVENTS if quick else N_EVENTS, 0), SHAPE)
        yield Remark(
            f"{X.nnz:,} nonzeros in {X.n_parts} parts: {X.bytes_on_disk / 1e6:.0f} MB on disk, "
            f"{X.nbytes / 1e6:.0f} MB in memory."
        )
        found = {}
        for name, max_memory in (("in parts", allowed), ("in memory", 10**11)):
            found[name] = _fitted(path, max_memory)
            fit = found[name]
            yield Row(
                "Fits",
                {
                    "data": name,
                    "solver": fit["solver"],
                    "loss": f"{fit['loss']:.9f}",
                    "s": fit["s"],
                    "peak of memory, MB": fit["bytes"] / 1e6,
                    "ended": fit["status"],
                },
            )
    parts, memory = found["in parts"], found["in memory"]
    above = 100 * (parts["loss"] - memory["loss"]) / abs(memory["loss"])
    yield Verdict("loss above that in memory, %", above, 0.1, at_most=True)
    yield Verdict("peak of memory, MB", parts["bytes"] / 1e6, allowed / 1e6, at_most=True)
