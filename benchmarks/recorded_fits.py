"""Fits recorded bit for bit, to see that a change of structure changed no number.

``python -m benchmarks.recorded_fits before.json`` writes a digest for each case;
``python -m benchmarks.recorded_fits after.json --against before.json`` names the cases that differ.
Every strategy and method is in it, dense, sparse, masked, weighted, on disk and on a cluster with a
fixed number of updates, with one thread and two, and what is inferred from fitted models.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import smartcpd
from smartcpd import SmartCPD, SparseTensor, datasets
from smartcpd.errors import SmartCPDError

Case = tuple[str, Callable[[int], Any]]
RENAMED = {
    "dense": "core",
    "subsampled": "large",
    "tiled": "blocks",
    "simplex": "relaxed",
    "completion": "observed",
    "few-events": "nonzeros",
    "sparse": "online",
    "partitioned": "parts",
}
"""Names that strategies had before; kept so that an older version can be recorded."""


def digest(values: Any) -> str:
    """Of arrays, numbers and text in lists and dicts: the same bits, the same digest."""
    found = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, dict):
            for name in sorted(value):
                add(name)
                add(value[name])
        elif isinstance(value, list | tuple):
            for each in value:
                add(each)
        elif isinstance(value, str | bool) or value is None:
            found.update(repr(value).encode())
        else:
            array = np.ascontiguousarray(value)
            found.update(str((array.dtype.str, array.shape)).encode())
            found.update(array.tobytes())

    add(values)
    return found.hexdigest()[:16]


def known(solver: str) -> str:
    """The name of a strategy in the version that runs."""
    try:
        smartcpd.explain(np.ones((2, 2, 2)), 1, "poisson", solver=solver)
    except SmartCPDError as error:
        if "Unknown solver" in str(error):
            return RENAMED[solver]
    return solver


def fitted(X: Any, rank: int, loss: Any, fit: dict[str, Any] | None = None, **more: Any) -> Case:
    def run(n_threads: int) -> Any:
        options = {"random_state": 3, "n_threads": n_threads, **more}
        if "solver" in options:
            options["solver"] = known(options["solver"])
        found = SmartCPD(rank, loss, progress=False, **options).fit(X, **(fit or {}))
        history = [[r.loss, r.penalty, r.epoch] for r in found.history_]
        return [list(found.factors_), found.loss_, history]

    return "", run


def named(name: str, case: Case) -> Case:
    return name, case[1]


def dense_cases() -> Iterator[Case]:
    counts = datasets.count((24, 20, 16), 3, random_state=0).data
    gamma = datasets.gamma((24, 20, 16), 3, random_state=0).data
    binary = datasets.binary((24, 20, 16), 3, random_state=0).data
    rng = np.random.default_rng(5)
    real = datasets.gaussian((24, 20, 16), 3, random_state=0).data
    mask = rng.random(counts.shape) > 0.2
    weights = rng.choice([0.5, 1.0, 2.0], counts.shape)
    yield named("dense poisson", fitted(counts, 3, "poisson"))
    yield named("dense gamma", fitted(gamma, 3, "gamma"))
    yield named("dense bernoulli-odds", fitted(binary, 3, "bernoulli-odds"))
    yield named("dense gaussian", fitted(real, 3, "gaussian"))
    for loss in ("bernoulli-logit", "poisson-log", "negative-binomial(4)", "huber(1)", "beta(0.5)"):
        X = binary if "bernoulli" in loss else gamma if "beta" in loss else counts
        yield named(f"dense {loss}", fitted(X, 3, loss, max_epochs=60))
    yield named("dense rayleigh", fitted(gamma, 3, "rayleigh", max_epochs=60))
    yield named("dense crowded", fitted(counts[:, :, :3], 4, "poisson"))
    yield named("dense masked", fitted(counts, 3, "poisson", {"mask": mask}))
    yield named("dense weighted", fitted(counts, 3, "poisson", {"weights": weights}))
    for solver in ("smd", "mm", "md", "lbfgs", "ggn", "gcp-adam", "ao-admm", "row-newton"):
        yield named(solver, fitted(counts, 3, "poisson", solver=solver, max_epochs=30))
    yield named("smd jensen", fitted(counts, 3, "poisson", step="jensen", max_epochs=20))
    yield named(
        "smd masked",
        fitted(counts, 3, "poisson", {"mask": mask}, solver="smd", n_init=3, max_epochs=30),
    )
    for solver in ("als", "hals", "brascpd", "adacpd"):
        yield named(solver, fitted(real, 3, "gaussian", solver=solver, max_epochs=30))
    yield named("subsampled", fitted(counts, 3, "poisson", solver="subsampled"))
    yield named("simplex", fitted(counts, 3, "poisson", constraint={0: "simplex", 1: "simplex"}))
    yield named("few-events", fitted(rng.poisson(0.01, (30, 20, 20)), 3, "poisson"))
    yield named("consensus", fitted(counts, 3, "poisson", n_init=3, consensus=True))
    yield named(
        "n_jobs", fitted(counts, 3, "poisson", solver="mm", n_init=4, n_jobs=2, max_epochs=60)
    )
    yield named("init als", fitted(counts, 3, "poisson", init="als", solver="mm", max_epochs=30))
    yield named("init smd", fitted(counts, 3, "poisson", init="smd", solver="lbfgs", max_epochs=30))
    for constraint in ("smoothness(0.1)", "sparsity(0.01)", "unimodal", "box(0, 2)", "l2-ball(3)"):
        yield named(
            f"constraint {constraint}",
            fitted(counts, 3, "poisson", max_epochs=20, constraint={0: constraint}),
        )


def sparse_cases() -> Iterator[Case]:
    counts = datasets.events((120, 40, 30), 3, 20_000, random_state=1).data
    binary = SparseTensor(counts.indices, np.ones(counts.nnz), counts.shape)
    yield named("sparse poisson", fitted(counts, 3, "poisson"))
    yield named("sparse bernoulli-odds", fitted(binary, 3, "bernoulli-odds"))
    yield named("sparse gaussian", fitted(counts, 3, "gaussian", max_epochs=20))
    yield named("completion", fitted(counts, 3, "poisson", absent="unobserved"))
    amounts = np.random.default_rng(2).choice([0.5, 1.0, 2.0], counts.nnz)
    weighted = SparseTensor(counts.indices, counts.values, counts.shape, weights=amounts)
    yield named("sparse weighted", fitted(weighted, 3, "poisson", solver="mm", max_epochs=20))
    yield named(
        "completion weighted", fitted(weighted, 3, "gaussian", absent="unobserved", max_epochs=30)
    )
    for solver in ("smd", "mm", "md", "lbfgs", "ggn", "gcp-adam", "ao-admm", "row-newton"):
        yield named(f"sparse {solver}", fitted(counts, 3, "poisson", solver=solver, max_epochs=20))
    yield named("sparse n_init", fitted(counts, 3, "poisson", n_init=3))


def disk_cases(folder: Path) -> Iterator[Case]:
    X = datasets.count((60, 50, 40), 3, random_state=4).data.astype(float)
    array = np.lib.format.open_memmap(folder / "x.npy", "w+", X.dtype, X.shape)
    array[...] = X
    yield named("tiled", fitted(array, 3, "poisson", max_memory=800_000))
    yield named(
        "tiled lbfgs",
        fitted(array, 3, "poisson", max_memory=800_000, solver="lbfgs", max_epochs=10),
    )
    counts = datasets.events((400, 60, 50), 3, 60_000, random_state=1).data
    parts = smartcpd.partitions.write_tensor(folder / "counts.parts", counts, part_bytes=40_000)
    yield named("partitioned", fitted(parts, 3, "poisson", max_memory="600kB"))


def cluster_cases(folder: Path) -> Iterator[Case]:
    import zarr
    from distributed import Client, LocalCluster

    from smartcpd.distributed import Cluster

    counts = datasets.events((400, 60, 50), 3, 60_000, random_state=1).data
    parts = smartcpd.partitions.write_tensor(folder / "shared.parts", counts, part_bytes=40_000)
    X = datasets.count((60, 50, 40), 3, random_state=4).data
    array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(20, 20, 20), dtype="f8")
    array[...] = X
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            silence_logs=50,
        ) as local,
        Client(local) as client,
    ):
        cluster = Cluster(client, local_updates=2)
        yield named("cluster sparse", fitted(parts, 3, "poisson", client=cluster))
        yield named("cluster tiles", fitted(array, 3, "poisson", client=client, max_memory=800_000))


def inferred_cases() -> Iterator[Case]:
    """What is said of models, by every loss."""
    examples = {
        "gaussian": datasets.gaussian((12, 10, 8), 2, random_state=1).data,
        "huber(1)": datasets.gaussian((12, 10, 8), 2, random_state=1).data,
        "gamma": datasets.gamma((12, 10, 8), 2, random_state=1).data,
        "beta(0.5)": datasets.gamma((12, 10, 8), 2, random_state=1).data,
        "rayleigh": datasets.gamma((12, 10, 8), 2, random_state=1).data,
        "poisson": datasets.count((12, 10, 8), 2, random_state=1).data,
        "poisson-log": datasets.count((12, 10, 8), 2, random_state=1).data,
        "negative-binomial(4)": datasets.count((12, 10, 8), 2, random_state=1).data,
        "bernoulli-odds": datasets.binary((12, 10, 8), 2, random_state=1).data,
        "bernoulli-logit": datasets.binary((12, 10, 8), 2, random_state=1).data,
    }
    for loss, X in examples.items():
        yield f"inferred {loss}", lambda n_threads, loss=loss, X=X: inferred(X, loss)
        sparse = SparseTensor(np.argwhere(X), X[X != 0], X.shape)
        if (X == 0).any():
            yield f"inferred sparse {loss}", lambda n, loss=loss, X=sparse: inferred(X, loss)
    counts = examples["poisson"]
    yield "select", lambda n_threads: selected(counts)
    yield "partial_fit", lambda n_threads: arrived(counts)


def inferred(X: Any, loss: str) -> Any:
    found = SmartCPD(2, loss, random_state=0, max_epochs=60, progress=False).fit(X)
    model = found.model_
    quality = smartcpd.quality.measure(model, X)
    answers = [
        json.loads(json.dumps(quality.to_dict(), default=float)),
        str(model.diagnose(X)),
        model.transform(X),
        model.score_samples(X),
    ]
    if "huber" not in loss:
        answers.append(model.surprise(X))
    for method in ("hessian", "conditional"):
        ends = model.intervals(X, method=method)
        answers.append([ends.lower, ends.upper, ends.weights_lower, ends.weights_upper])
    if not isinstance(X, SparseTensor):
        ends = model.intervals(X, method="bootstrap", n_bootstrap=20, random_state=0)
        answers.append([ends.lower, ends.upper])
    return answers


def selected(X: np.ndarray) -> Any:
    found = smartcpd.select(X, ranks=[1, 2, 3], losses=["poisson", "gaussian"], random_state=0)
    return str(found)


def arrived(X: np.ndarray) -> Any:
    model = SmartCPD(2, "poisson", random_state=0, progress=False)
    for first in range(0, len(X), 4):
        model.partial_fit(X[first : first + 4])
    return list(model.factors_)


def every_case(folder: Path) -> Iterator[Case]:
    yield from dense_cases()
    yield from sparse_cases()
    yield from disk_cases(folder)
    yield from cluster_cases(folder)
    yield from inferred_cases()


def recorded(only: str) -> dict[str, str]:
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, run in every_case(Path(folder)):
            if only not in name:
                continue
            for n_threads in (1, 2):
                began = time.perf_counter()
                try:
                    found[f"{name} ({n_threads})"] = digest(run(n_threads))
                except Exception as error:
                    found[f"{name} ({n_threads})"] = f"{type(error).__name__}: {error}"[:200]
                taken = time.perf_counter() - began
                print(
                    f"{taken:6.2f} s  {name} ({n_threads}) {found[f'{name} ({n_threads})']}",
                    file=sys.stderr,
                    flush=True,
                )
                if name.startswith(("inferred", "select", "partial")):
                    break
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path, help="a record of another version")
    parser.add_argument("--only", default="", help="cases whose names hold this")
    options = parser.parse_args()
    found = recorded(options.only)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text())
    changed = [name for name, value in found.items() if before.get(name) != value]
    for name in changed:
        print(f"{name}: {before.get(name, 'not there')} before, {found[name]} now")
    print(f"{len(found) - len(changed)} the same, {len(changed)} differ")
    return bool(changed)


if __name__ == "__main__":
    raise SystemExit(main())
