"""The identity of a fit, which says whether a checkpoint belongs to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import singledispatch
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from smartcpd._common.atomic import replace_file
from smartcpd._common.hashing import digest, file_facts
from smartcpd._common.version import __version__
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.tiled import TiledArray
from smartcpd._data.tiled.source import files_of
from smartcpd._kernels.condensing import condensed
from smartcpd._problem.problem import Problem
from smartcpd.errors import CheckpointError
from smartcpd.partitions.tensor import PartitionedTensor


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
            digest([repr(rng.bit_generator.state).encode()]),
            int(entropy) if isinstance(entropy, int) else None,
        )

    @property
    def mark(self) -> str:
        """A text that every file of the checkpoint is written and read with."""
        return json.dumps([self.data, self.settings, self.random], sort_keys=True)

    def write(self, path: Path) -> None:
        replace_file(path, json.dumps(asdict(self), indent=2).encode())

    @classmethod
    def read(cls, path: Path) -> Identity:
        try:
            found = cls(**json.loads(path.read_bytes()))
            if not isinstance(found.settings, dict) or type(found.entropy) not in (int, NoneType):
                raise TypeError("settings and entropy are missing")
            return found
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
    """Data on disk may be larger than a fit has time to read.

    It is known by the names, sizes and times of change of its files and by the cells of the
    glimpse; where it has no files, by these cells alone.
    """
    seen = storage.glimpse
    files = [path for part in storage.on_disk for path in files_of(part)]
    facts = digest(file_facts(files))
    return _described(storage, f"in blocks, {facts}", [*seen.indices, seen.x, seen.weights])


@data_digest.register
def _(storage: PartitionedTensor) -> str:
    about = digest([repr(storage.manifest).encode(), *storage.each_bytes()])
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
    """Return the digest of all bytes of arrays."""
    shape = "x".join(map(str, storage.shape))
    every = arrays if weights is None else [*arrays, weights]
    about = digest(piece for array in every for piece in condensed(array))
    return f"{shape} {storage.dtype.name}, {kind}, {about}"


def _plain(value: Any) -> Any:
    """Return a parameter in a form that JSON can hold and people can read."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return f"array of {value.shape}, {digest(condensed(value))}"
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return str(value)
