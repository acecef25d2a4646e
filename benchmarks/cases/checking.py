"""What safety costs: indices checked where a file is read, data hashed for a checkpoint.

5 million nonzeros of 20,000 x 500 x 300 are read from a folder of parts and from an archive; the
check of their indices is timed by itself, on the same arrays. The digest of a fit's data is timed
against eight passes over it: the value and all gradients of a Poisson model of rank 10.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import smartcpd
from benchmarks.harness import interleaved
from benchmarks.results import Method, Result, Row, Spread, Verdict
from smartcpd import SparseTensor, losses
from smartcpd._data.opening import as_storage
from smartcpd._data.storage.entries import checked_columns, checked_shape
from smartcpd._objectives import objective_of
from smartcpd._problem.checkpoints.identity import data_digest
from smartcpd.partitions.checking import check_entries

SHAPE = (20_000, 500, 300)
PASSES = 8


def sparse(nnz: int) -> SparseTensor:
    rng = np.random.default_rng(0)
    cells = tuple(rng.integers(size, size=nnz) for size in SHAPE)
    return SparseTensor(cells, rng.integers(1, 9, nnz), SHAPE)


def reading(nnz: int, folder: Path, repeats: int) -> Iterator[Result]:
    """Time the checks of indices next to the reading that they are a part of."""
    X = sparse(nnz)
    smartcpd.write(folder / "x.npz", X)
    smartcpd.write(folder / "x.parts", X)
    parts = smartcpd.read(folder / "x.parts")
    held = [parts.entries(k) for k in range(len(parts.manifest.parts))]

    def check_parts() -> None:
        for part, entries in zip(parts.manifest.parts, held, strict=True):
            check_entries(folder, parts.manifest, part, entries)

    tasks = {
        "x.npz": lambda: smartcpd.read(folder / "x.npz"),
        "x.npz, check": lambda: checked_shape(checked_columns(X.indices), SHAPE),
        "x.parts": lambda: smartcpd.read(folder / "x.parts").load(),
        "x.parts, check": check_parts,
    }
    found = interleaved(tasks, repeats)
    for name in ("x.npz", "x.parts"):
        share = Spread.ratio(found[f"{name}, check"], found[name])
        yield Row(
            f"Indices of {nnz:,} nonzeros",
            {
                "file": name,
                "read, s": Spread.of(found[name].seconds),
                "check, s": Spread.of(found[f"{name}, check"].seconds),
                "share": share,
            },
        )
        yield Verdict(
            f"share of reading {name} that checks indices", share.median, 0.03, at_most=True
        )


def hashing(repeats: int) -> Iterator[Result]:
    """Time the digest of data next to eight passes over it."""
    rng = np.random.default_rng(0)
    stored = {
        "dense 200³": as_storage(rng.poisson(2.0, (200, 200, 200)).astype(float)),
        "1 M nonzeros": sparse(1_000_000),
    }
    for name, storage in stored.items():
        A = rng.random((sum(storage.shape), 10)) + 0.1
        objective = objective_of(storage, losses.get("poisson"), 1)

        def passes(A: np.ndarray = A, objective: object = objective) -> None:
            for _ in range(PASSES):
                objective.gradient(A)  # type: ignore[attr-defined]

        tasks = {"digest": lambda storage=storage: data_digest(storage), "passes": passes}
        found = interleaved(tasks, repeats)
        share = Spread.ratio(found["digest"], found["passes"])
        cells = {"data": name, "digest, s": Spread.of(found["digest"].seconds)}
        cells |= {"eight passes, s": Spread.of(found["passes"].seconds), "share": share}
        yield Row("Digest of the data", cells)
        yield Verdict(f"digest of {name}, share of eight passes", share.median, 0.05, at_most=True)


def run(quick: bool = False) -> Iterator[Result]:
    """Measure both."""
    yield Method("smartcpd", "one thread", "all")
    with tempfile.TemporaryDirectory() as folder:
        yield from reading(500_000 if quick else 5_000_000, Path(folder), 3 if quick else 7)
    yield from hashing(3 if quick else 7)
