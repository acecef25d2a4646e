"""Planted counts of the paper's Chicago size: 6186x24x77x32, 5.2 million nonzeros, rank 10.

What a full gradient costs next to reading the data once, how much memory a fit takes, and how many
passes it needs to come within 0.2 % of the best loss known.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import interleaved
from benchmarks.ours import first_at, tensor_of
from benchmarks.real_data import synthetic_chicago
from benchmarks.results import Method, Remark, Result, Row, Spread, Verdict
from smartcpd import SmartCPD, losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._objectives import objective_of

RANK = 10
FIT = """
import sys
import numpy as np
from smartcpd import SmartCPD, SparseTensor

def load(count):
    with np.load(sys.argv[1]) as held:
        columns = tuple(held[f"mode{n}"][:count] for n in range(4))
        return SparseTensor(columns, held["values"][:count], (6186, 24, 77, 32))

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

SmartCPD(10, "poisson", random_state=0, max_epochs=30).fit(load(60_000))
forget_peak()  # compilation has one of its own
bare = peak()
X = load(None)
SmartCPD(10, "poisson", random_state=0).fit(X)
print(X.nbytes, bare, peak())
"""


def run() -> Iterator[Result]:
    data, truth = synthetic_chicago(seed=0)
    X = tensor_of(data)
    yield Remark(f"{X!r}, {X.nbytes / 1e6:.0f} MB.")
    n_threads = threads.resolve(2)
    yield Method("smartcpd", "defaults", n_threads)
    objective = objective_of(X, losses.get("poisson"), n_threads)
    A = stack(truth)

    def read_once() -> float:
        return float(sum(int(column.sum()) for column in X.indices) + X.values.sum())

    with threads.limited_to(n_threads):
        times = interleaved({"gradient": lambda: objective.gradient(A), "read": read_once})
    gradient, read = times["gradient"], times["read"]
    yield Row(
        "A full gradient and reading the data once",
        {
            "gradient, s": Spread.of(gradient.seconds),
            "reading, s": Spread.of(read.seconds),
            "ratio": Spread.ratio(gradient, read),
        },
    )
    yield Verdict("seconds of a full gradient", gradient.median, 0.25, at_most=True)

    oracle = SmartCPD(RANK, "poisson", init=truth, tol=1e-4).fit(X)
    fits = [SmartCPD(RANK, "poisson", random_state=seed).fit(X) for seed in range(4)]
    best = min(oracle.loss_, *(f.loss_ for f in fits))
    for seed, fit in enumerate(fits):
        there = first_at(fit.history_, best * 1.002)
        assert there is not None
        last = fit.history_[-1]
        yield Row(
            "Fits",
            {
                "seed": seed,
                "within 0.2 %": f"{there.loss:.6f} ({there.phase})",
                "passes": there.entries / X.nnz,
                "s": there.time,
                "ends at": f"{fit.loss_:.6f}",
                "passes in all": last.entries / X.nnz,
                "s in all": last.time,
            },
        )
        yield Verdict("passes to within 0.2 %", there.entries / X.nnz, 10, at_most=True)
    yield Remark(f"The best loss known is {best:.6f}; from the truth {oracle.loss_:.6f}.")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "entries.npz"
        np.savez(path, values=X.values, **{f"mode{n}": c for n, c in enumerate(X.indices)})
        out = subprocess.run(
            [sys.executable, "-c", FIT, path], capture_output=True, text=True, check=True
        )
    size, bare, peak = (int(word) for word in out.stdout.split())
    yield Row(
        "Memory, MB",
        {
            "peak of the process": peak / 1e6,
            "interpreter, libraries, compiled code": bare / 1e6,
            "indices and values": size / 1e6,
        },
    )
    yield Verdict("peak of the fit over indices and values", (peak - bare) / size, 12, at_most=True)
