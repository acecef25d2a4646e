"""The identity of a fit, which says whether a checkpoint belongs to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.atomic import replace_file
from smartcpd._common.version import __version__
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.tiled import TiledArray
from smartcpd._problem.problem import Problem
from smartcpd.errors import CheckpointError
from smartcpd.partitions.tensor import PartitionedTensor

ALL_BYTES = 1 << 26
"""The size of arrays, in bytes, up to which every byte is hashed; of longer ones, stretches from
all over them are.
"""
STRETCHES = 64


@dataclass(frozen=True)
class Identity:
    """The data of a fit, as a digest, and its settings, by name."""

    data: str
    settings: dict[str, Any]
    random: str
    """A digest of the state in which random numbers begin."""
    entropy: int | None
    """The seed of that state, if it is a number."""

    @classmethod
    def of(cls, problem: Problem, asked: dict[str, Any], rng: np.random.Generator) -> Identity:
        settings = {name: _plain(value) for name, value in asked.items()}
        settings["loss"] = str(problem.loss)
        settings["smartcpd"] = __version__
        entropy = getattr(rng.bit_generator.seed_seq, "entropy", None)
        return cls(
            data_digest(problem.storage),
            settings,
            _digest([repr(rng.bit_generator.state).encode()]),
            int(entropy) if isinstance(entropy, int) else None,
        )

    def write(self, path: Path) -> None:
        replace_file(path, json.dumps(asdict(self), indent=2).encode())

    @classmethod
    def read(cls, path: Path) -> Identity:
        try:
            return cls(**json.loads(path.read_bytes()))
        except (ValueError, TypeError) as error:
            raise CheckpointError(
                f"{path} does not describe a checkpoint ({error}). Begin the fit anew, without "
                "resuming."
            ) from error


def check_same(before: Identity, now: Identity, path: Path) -> None:
    """Raise an error if a checkpoint belongs to another fit."""
    names = sorted(before.settings.keys() | now.settings.keys())
    differences = [
        f"{name} was {before.settings.get(name)!r} and is {now.settings.get(name)!r}"
        for name in names
        if before.settings.get(name) != now.settings.get(name)
    ]
    if before.random != now.random:
        differences.append("the random state is another")
    if before.data != now.data:
        differences.append(f"the data is another ({before.data} then, {now.data} now)")
    if differences:
        raise CheckpointError(
            f"The checkpoint in {path} is of another fit: {'; '.join(differences)}. Ask for the "
            "same, or begin anew without resuming."
        )


@singledispatch
def data_digest(storage: Storage) -> str:
    """Return the shape and kind of a tensor, with a hash of what it holds."""
    raise TypeError(f"{type(storage).__name__} is no storage that a digest is known for.")


@data_digest.register
def _(storage: Dense) -> str:
    return _described(storage, "dense" + _remark(storage), [storage.array], storage.weights)


@data_digest.register
def _(storage: SparseTensor) -> str:
    kind = f"{storage.nnz} nonzeros, absent {storage.absent}{_remark(storage)}"
    arrays = [*storage.missing, *storage.indices, storage.values]
    return _described(storage, kind, arrays, storage.weights)


@data_digest.register
def _(storage: TiledArray) -> str:
    seen = storage.glimpse
    return _described(storage, "in blocks", [*seen.indices, seen.x])


@data_digest.register
def _(storage: PartitionedTensor) -> str:
    about = _digest([repr(storage.manifest).encode()])
    shape = "x".join(map(str, storage.shape))
    return f"{shape} {storage.dtype}, {storage.nnz} nonzeros in parts, {about}"


def _remark(storage: Dense | SparseTensor) -> str:
    """Say whether cells are missing or do not all count the same."""
    if storage.weights is None:
        return ""
    return f", {storage.n_missing} missing" if storage.n_missing else ", weighted"


def _described(
    storage: Storage, kind: str, arrays: Sequence[np.ndarray], weights: np.ndarray | None = None
) -> str:
    """Return the digest of arrays, of which the last one holds the values."""
    shape = "x".join(map(str, storage.shape))
    every = arrays if weights is None else [*arrays, weights]
    return f"{shape} {arrays[-1].dtype.name}, {kind}, {_digest(map(_stretches, every))}"


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return a parameter in a form that JSON can hold and people can read."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return f"array of {value.shape}, {_digest([_stretches(value)])}"
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return str(value)


def _stretches(array: np.ndarray) -> bytes:
    if array.nbytes <= ALL_BYTES or array.shape[0] < 2 * STRETCHES:
        return array.tobytes()
    rows = max(1, array.shape[0] * ALL_BYTES // array.nbytes // STRETCHES)
    starts = np.linspace(0, array.shape[0] - rows, STRETCHES).astype(int)
    return b"".join(array[start : start + rows].tobytes() for start in starts)
