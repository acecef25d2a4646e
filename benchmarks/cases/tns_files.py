"""Reading and writing a .tns file of 5.2 million lines, against numpy.loadtxt and savetxt."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import smartcpd
from benchmarks.harness import interleaved
from benchmarks.results import Method, Remark, Result, Row, Spread, Verdict
from smartcpd._data.tns import read_tns

N_LINES = 5_200_000
SHAPE = (6186, 24, 77, 32)


def run() -> Iterator[Result]:
    yield Method("smartcpd", "read, write", "all")
    yield Method("numpy", "loadtxt", 1)
    rng = np.random.default_rng(0)
    table = np.column_stack(
        [*(rng.integers(1, n + 1, N_LINES) for n in SHAPE), rng.geometric(0.7, N_LINES)]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chicago.tns"
        np.savetxt(path, table, fmt="%d")
        yield Remark(f"{N_LINES:,} lines, {path.stat().st_size / 1e6:.0f} MB.")
        tasks = {
            "read": lambda: read_tns(path),
            "read into a SparseTensor": lambda: smartcpd.read(path),
            "numpy.loadtxt": lambda: np.loadtxt(path),
            "numpy.loadtxt, told dtype=int64": lambda: np.loadtxt(path, dtype=np.int64),
        }
        times = interleaved(tasks, repeats=5)
        for name, timing in times.items():
            yield Row("Reading", {"by": name, "s": Spread.of(timing.seconds)})
        read, loadtxt = times["read"], times["numpy.loadtxt"]
        for name in ("numpy.loadtxt", "numpy.loadtxt, told dtype=int64"):
            yield Row("Times faster", {"than": name, "ratio": Spread.ratio(times[name], read)})
        yield Verdict("times faster than numpy.loadtxt", loadtxt.median / read.median, 5)
        X = smartcpd.read(path)
        copy = Path(folder) / "copy.tns"
        writing = interleaved({"write": lambda: smartcpd.write(copy, X)}, repeats=3)["write"]
        yield Row("Writing", {"entries": X.nnz, "s": Spread.of(writing.seconds)})
