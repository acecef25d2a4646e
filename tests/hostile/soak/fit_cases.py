"""Fits of all kinds, each a function of a seed and a number.

A case draws its data from the loss that it is fitted with, then makes it odd: other units, holes,
weights, an outlier, a constant; stored in one of many ways; and asks for it in one of many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pieces
import scipy.sparse
import zarr

import smartcpd
from smartcpd import SparseTensor, losses
from smartcpd._strategies import registry

MAX_TIMES = (0.1, 0.1, 0.1, 0.6)
"""Seconds that fits are given: most only so many as tell whether they keep to them."""
CELLS = 600
CONSTRAINTS = [
    *pieces.CONSTRAINTS, "box(0, 2)", "box(-1, 1)", "l1-ball(3)", "l2-ball(0.5)", "sparsity(0.01)",
    "smoothness(1)", "simplex",
]  # fmt: skip
STORAGES = [
    "dense", "dense", "fortran", "strided", "float32", "integers", "nan", "mask", "weights",
    "sparse", "sparse", "unobserved", "sparse weights", "scipy", "zarr", "parts", "labelled",
]  # fmt: skip


@dataclass
class Case:
    """What is fitted and how; ``str`` of it says enough to see what is odd about it."""

    X: Any
    parameters: dict[str, Any]
    storage: str
    scale: float
    oddity: str
    more: dict[str, Any] = field(default_factory=dict)
    """The mask or the weights."""

    def __str__(self) -> str:
        named = {k: v for k, v in self.parameters.items() if k != "progress"}
        shape = "x".join(map(str, self.X.shape))
        return f"{shape} {self.storage} scale={self.scale:.3g} {self.oddity} {named}"


def case(seed: int, number: int, folder: Path) -> Case:
    """The case of a number; files that it needs are written to the folder."""
    rng = np.random.default_rng([seed, number])
    loss = str(rng.choice(pieces.LOSSES))
    shape, rank = drawn_shape(rng)
    scale = drawn_scale(rng)
    oddity = str(rng.choice(["plain"] * 5 + ["outlier", "constant", "few", "slice", "zeros"]))
    X = drawn_data(losses.get(loss), shape, rank, oddity, rng) * scale
    storage = str(rng.choice(STORAGES))
    held, more = stored(X, storage, rng, folder)
    asked = drawn_parameters(rng, len(shape)) | {"rank": rank, "loss": loss}
    if storage == "zarr":
        asked["max_memory"] = 20_000
    if storage in ("unobserved",):
        asked["absent"] = "unobserved"
    return Case(held, asked, storage, scale, oddity, more)


def drawn_shape(rng: np.random.Generator) -> tuple[tuple[int, ...], int]:
    order = int(rng.choice([2, 3, 3, 3, 3, 4, 5]))
    most = CELLS ** (1 / order)
    shape = [int(n) for n in rng.integers(2, max(3, 1.5 * most), order)]
    if rng.random() < 0.1:
        shape[int(rng.integers(order))] = 1
    rank = int(rng.integers(1, 5)) if rng.random() < 0.9 else int(rng.integers(5, 12))
    return tuple(shape), rank


def drawn_scale(rng: np.random.Generator) -> float:
    """1 for most; else a few orders of magnitude, else hundreds."""
    kind = rng.random()
    if kind < 0.6:
        return 1.0
    return float(10.0 ** rng.uniform(-4, 4) if kind < 0.85 else 10.0 ** rng.uniform(-200, 200))


def drawn_data(
    loss: losses.Loss, shape: tuple[int, ...], rank: int, oddity: str, rng: np.random.Generator
) -> np.ndarray:
    """Data of a planted model; see the module."""
    if loss.domain is losses.base.Domain.NONNEGATIVE:
        factors = [rng.gamma(0.7, 1.0, (n, rank)) + 0.05 for n in shape]
    else:
        factors = [rng.normal(size=(n, rank)) for n in shape]
    m = np.ones((rank,))
    for A in factors:
        m = m[..., None, :] * A if m.ndim > 1 else A
    m = m.sum(-1)
    if oddity == "few":
        m = m / 30 if loss.domain is losses.base.Domain.NONNEGATIVE else m - 4
    highest = (
        1e6 if loss.domain is losses.base.Domain.NONNEGATIVE else 20
    )  # some take its exponential
    X = pieces.simulated(loss, np.clip(m, -20, highest), rng)
    place = tuple(int(rng.integers(n)) for n in shape)
    if oddity == "outlier" and losses.get("poisson") == loss:
        X[place] = 1e5
    elif oddity == "outlier" and X.max() > 1:
        X[place] *= 1e4
    elif oddity == "constant":
        X[:] = X.flat[0]
    elif oddity == "zeros":
        X[:] = 0
    elif oddity == "slice":
        X[place[0]] = 0
    return X


def drawn_parameters(rng: np.random.Generator, order: int) -> dict[str, Any]:
    """How the fit is asked for: mostly as usual, a few things out of all."""
    asked: dict[str, Any] = {
        "max_time": float(rng.choice(MAX_TIMES)), "random_state": int(rng.integers(1000)),
        "progress": False, "n_threads": 1,
    }  # fmt: skip

    def sometimes(share: float, name: str, *values: Any) -> None:
        if rng.random() < share:
            asked[name] = values[int(rng.integers(len(values)))]

    sometimes(0.5, "solver", *[n for n in registry.names() if n != "auto"])
    sometimes(0.3, "constraint", *CONSTRAINTS)
    if "constraint" in asked and rng.random() < 0.5:
        asked["constraint"] = {int(rng.integers(order)): asked["constraint"]}
    sometimes(0.15, "mirror", *pieces.MIRRORS)
    sometimes(0.15, "step", *pieces.STEPS)
    sometimes(0.05, "sampler", "nonempty", "nonzeros", "uniform")
    sometimes(0.1, "dtype", "float32")
    sometimes(0.2, "n_init", 2, 3)
    sometimes(0.1, "init", "als", "smd")
    sometimes(0.3, "max_epochs", 1, 5, 50)
    sometimes(0.05, "kkt_tol", 1e-3)
    sometimes(0.05, "tol", 0.0, 1.0)
    sometimes(0.05, "n_fibers", 1, 50)
    sometimes(0.05, "effort", 0.0, 3.0)
    return asked


def stored(
    X: np.ndarray, storage: str, rng: np.random.Generator, folder: Path
) -> tuple[Any, dict[str, Any]]:
    """The data as it is handed over, and the mask or weights that go with it."""
    holes = rng.random(X.shape) < rng.choice([0.05, 0.3, 0.9])
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], X.shape)
    cells, values = np.argwhere(X), X[X != 0]
    if storage == "fortran":
        return np.asfortranarray(X), {}
    if storage == "strided":
        return np.repeat(X, 2, axis=0)[::-2], {}
    if storage in ("float32", "integers"):
        with np.errstate(all="ignore"):
            return X.astype("float32" if storage == "float32" else "int64"), {}
    if storage == "nan":
        return np.where(holes, np.nan, X), {}
    if storage in ("mask", "weights"):
        return X, {"mask": ~holes} if storage == "mask" else {"weights": weights}
    if storage == "sparse":
        return SparseTensor(cells, values, X.shape), {}
    if storage == "sparse weights":
        return SparseTensor(cells, values, X.shape, weights=weights[X != 0]), {}
    if storage == "unobserved":
        seen = np.argwhere(~holes)
        return SparseTensor(seen, X[~holes], X.shape, "unobserved"), {}
    if storage == "scipy":
        return scipy.sparse.coo_array(X.reshape(X.shape[0], -1)).tocsr(), {}
    if storage == "zarr":
        chunks = tuple(max(1, n // 2) for n in X.shape)
        array = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=chunks, dtype="f8")
        array[:] = X
        return array, {}
    if storage == "parts":
        held = SparseTensor(cells, values, X.shape)
        return smartcpd.partitions.write_tensor(folder / "x.parts", held, part_bytes=2000), {}
    if storage == "labelled":
        modes = [smartcpd.Mode(f"m{n}", list(range(size))) for n, size in enumerate(X.shape)]
        return smartcpd.LabelledTensor(X, tuple(modes)), {}
    return X, {}
