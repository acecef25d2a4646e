"""A dense tensor of counts of 4 GB on disk, rank 10, fitted within 1 GB of memory.

It is stored by Zarr in chunks of 250x250x250. Fits run in processes of their own, so that their
peak memory can be told. The engine in memory fits the same tensor, loaded as a whole.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.results import Method, Result, Row, Verdict
from smartcpd._common import threads
from smartcpd.datasets.planted import spiky_factors

SHAPE, QUICK_SHAPE, RANK, CHUNK, SEED = (2000, 2000, 1000), (600, 600, 500), 10, 250, 995_000
MOST_MEMORY, AIM = 1.3e9, 5e-3

FIT = """
import json, resource, sys
import numpy as np
import zarr
from smartcpd import SmartCPD, metrics
from smartcpd._data.tiled.source import Source

folder, max_memory = sys.argv[1:]
truth = [np.load(f"{folder}/truth{k}.npy") for k in range(3)]
X = zarr.open_array(f"{folder}/X.zarr", mode="r")
cells, read = 0, Source.read
looks = []

def counted(self, where):
    global cells
    found = read(self, where)
    cells += found.size
    return found

def look(report):
    if report.record.phase.startswith("tile"):
        looks.append((cells, metrics.factor_mse(report.model(), truth)))

Source.read = counted
if max_memory == "all":
    X, max_memory = X[...], None
rows = SmartCPD(10, "poisson", random_state=0, max_memory=max_memory, callback=look).fit(X)
last = rows.history_[-1]
print(json.dumps({
    "error": metrics.factor_mse(rows.model_, truth), "seconds": last.time, "entries": last.entries,
    "read": cells, "looks": looks, "status": str(rows.status_),
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def run(quick: bool = False) -> Iterator[Result]:
    shape = QUICK_SHAPE if quick else SHAPE
    yield Method("smartcpd", "max_memory='1GB'", threads.resolve(None))
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), shape)
        on_disk = fitted(folder, "100MB" if quick else "1GB")
        in_memory = fitted(folder, "all")
    n_cells = float(np.prod(shape))
    for name, found in (("on disk", on_disk), ("in memory", in_memory)):
        yield Row(
            "Fits",
            {
                "data": name,
                "error": found["error"],
                "s": found["seconds"],
                "million entries a second": found["entries"] / found["seconds"] / 1e6,
                "peak GB": found["peak"] / 1e9,
                "status": found["status"],
            },
        )
    for cells, error in on_disk["looks"]:
        yield Row("After each tile", {"share read": cells / n_cells, "error": error})
    share = min((c / n_cells for c, error in on_disk["looks"] if error <= AIM), default=np.inf)
    yield Verdict(f"share of the array read when the error is {AIM:g}", share, 1 / 3, at_most=True)
    if not quick:
        yield Verdict("peak memory, GB", on_disk["peak"] / 1e9, MOST_MEMORY / 1e9, at_most=True)
    rates = [found["entries"] / found["seconds"] for found in (on_disk, in_memory)]
    yield Verdict("entries a second, of those in memory", rates[0] / rates[1], 0.5)


def written(folder: Path, shape: tuple[int, ...]) -> None:
    """A planted tensor, drawn and stored chunk by chunk."""
    import zarr

    rng = np.random.default_rng(SEED)
    truth = spiky_factors(shape, RANK, 0.5, 0.05, rng)
    for k, A in enumerate(truth):
        np.save(folder / f"truth{k}.npy", A)
    stored = zarr.create_array(folder / "X.zarr", shape=shape, chunks=(CHUNK,) * 3, dtype="uint8")
    for first in np.ndindex(*(-(-size // CHUNK) for size in shape)):
        where = tuple(slice(CHUNK * k, CHUNK * (k + 1)) for k in first)
        A, B, C = (F[s] for F, s in zip(truth, where, strict=True))
        mean = np.einsum("ir,jr,kr->ijk", A, B, C, optimize=True)
        stored[where] = np.minimum(rng.poisson(mean), 255)


def fitted(folder: str, max_memory: str) -> dict:
    command = [sys.executable, "-c", FIT, folder, max_memory]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(out.stdout)
