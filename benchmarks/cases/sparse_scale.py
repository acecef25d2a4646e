"""Planted counts of the paper's Chicago size: 6186x24x77x32, 5.2 million nonzeros, rank 10.

What a full gradient costs next to reading the data once, how much memory a fit takes, and how many
passes it needs to come within 0.2 % of the best loss known.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import interleaved, ratio_spread, verdict
from benchmarks.ours import tensor_of
from benchmarks.real_data import synthetic_chicago
from smartcpd import SmartCPD, losses, threads
from smartcpd.objectives import objective_of
from smartcpd.stack import stack

RANK = 10
FIT = """
import resource, sys
import numpy as np
from benchmarks.ours import tensor_of
from benchmarks.real_data import SparseData
import smartcpd
held = np.load(sys.argv[1])
X = smartcpd.SparseTensor(tuple(held["indices"].T), held["values"], tuple(held["shape"]))
del held
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
smartcpd.SmartCPD(10, "poisson", random_state=0).fit(X)
print(X.nbytes, before * 1024, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def run() -> Iterator[str]:
    data, truth = synthetic_chicago(seed=0)
    X = tensor_of(data)
    yield f"{X!r}, {X.nbytes / 1e6:.0f} MB"
    n_threads = threads.resolve(2)
    objective = objective_of(X, losses.get("poisson"), n_threads)
    A = stack(truth)

    def read_once() -> float:
        return float(sum(int(column.sum()) for column in X.indices) + X.values.sum())

    with threads.limited_to(n_threads):
        times = interleaved({"gradient": lambda: objective.gradient(A), "read": read_once})
    gradient, read = times["gradient"], times["read"]
    yield f"gradient of all modes: {gradient.median:.3f} s ({gradient.spread}), {n_threads} threads"
    yield f"reading indices and values once: {read.median:.4f} s; {ratio_spread(gradient, read)}"
    yield verdict("seconds of a full gradient", gradient.median, 0.25, at_most=True)

    oracle = SmartCPD(RANK, "poisson", init=truth, tol=1e-4).fit(X)
    fits = [SmartCPD(RANK, "poisson", random_state=seed).fit(X) for seed in range(4)]
    best = min(oracle.loss_, *(f.loss_ for f in fits))
    for seed, fit in enumerate(fits):
        there = next(r for r in fit.history_ if r.loss <= best * 1.002)
        yield (
            f"seed {seed}: {there.loss:.6f} ({there.phase}) after {there.entries / X.nnz:.1f} "
            f"passes, {there.time:.2f} s; ends at {fit.loss_:.6f} after "
            f"{fit.history_[-1].entries / X.nnz:.0f} passes, {fit.history_[-1].time:.2f} s"
        )
        yield verdict("passes to within 0.2 %", there.entries / X.nnz, 10, at_most=True)
    yield f"best known {best:.6f}, from the truth {oracle.loss_:.6f}"

    path = sys.argv[0] and "/tmp/smartcpd_scale.npz"
    np.savez(path, indices=data.indices, values=X.values, shape=data.shape)
    out = subprocess.run(
        [sys.executable, "-c", FIT, path], capture_output=True, text=True, check=True
    )
    size, before, peak = (int(word) for word in out.stdout.split())
    yield (
        f"peak of the process {peak / 1e6:.0f} MB, {before / 1e6:.0f} MB before the fit, "
        f"indices and values {size / 1e6:.0f} MB"
    )
    yield verdict("peak over indices and values", peak / size, 12, at_most=True)
