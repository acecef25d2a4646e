"""The parts of a file format: endings of names, a reader and perhaps a writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.labels import LabelledTensor, taken_off
from smartcpd._data.storage import Dense, SparseStorage, SparseTensor
from smartcpd._data.storage.conversion import as_sparse
from smartcpd.errors import InvalidDataError

Tensor = SparseStorage | np.ndarray | LabelledTensor


@dataclass(frozen=True)
class Format:
    """A format, found by how the names of its files end.

    Parameters
    ----------
    title : str
        What a message calls it.
    suffixes : tuple of str
        Endings in lower case, with the dot.
    read : callable (path, member) -> tensor
        ``member`` is the array that the user asked for in a file of several, or None.
    write : callable (path, tensor), optional
        Absent for formats that are only read.
    """

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, str | None], Tensor]
    write: Callable[[Path, Any], None] | None = None


def chosen_member(
    path: Path, asked: str | None, shapes: dict[str, Sequence[int]], names: Sequence[str]
) -> str:
    """Return the array to read: the one that was asked for, or the only one that is a tensor.

    ``shapes`` are those of the numeric arrays, ``names`` everything that the file holds.
    """
    if asked is not None:
        if asked in shapes:
            return asked
        state = "does not hold numbers" if asked in names else "is not there"
        raise InvalidDataError(
            f"{path}::{asked} {state}; its numeric arrays are {_listed(shapes) or 'none'}."
        )
    tensors = {name: s for name, s in shapes.items() if _is_tensor(s)}
    if len(tensors) == 1:
        return next(iter(tensors))
    if not tensors:
        raise InvalidDataError(
            f"{path} holds no numeric array with at least two modes, only "
            f"{', '.join(names) or 'nothing'}."
        )
    raise InvalidDataError(
        f"{path} holds several arrays, {_listed(tensors)}; choose one, for example "
        f"'{path}::{next(iter(tensors))}'."
    )


def _is_tensor(shape: Sequence[int]) -> bool:
    """Whether it is more than a number or a vector, which some formats write as a thin matrix."""
    return len(shape) >= 2 and sum(size != 1 for size in shape) >= 2


def _listed(shapes: dict[str, Sequence[int]]) -> str:
    return ", ".join(f"{name} ({'x'.join(map(str, shape))})" for name, shape in shapes.items())


def real_array(path: Path, array: Any) -> np.ndarray:
    """Return an array of real numbers in this machine's byte order; refuse anything else."""
    found = np.asanyarray(array)
    if found.dtype.kind not in "buif":
        raise InvalidDataError(
            f"{path} holds {_type_name(found.dtype)}; a tensor has real numbers in its cells."
        )
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def _type_name(dtype: np.dtype) -> str:
    if dtype.kind == "O":
        return "Python objects, which are never loaded because that can run code"
    kinds = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "durations"}
    return kinds.get(dtype.kind, f"values of type {dtype}")


def dense_array(path: Path, X: Any) -> np.ndarray:
    """Return X as an array, for a format that stores every cell."""
    tensor, _ = taken_off(X)
    if isinstance(tensor, np.ndarray):
        return real_array(path, tensor)
    return sparse_tensor(tensor).to_dense()


def sparse_tensor(X: Any) -> SparseTensor:
    """Return X as a sparse tensor, for a format that stores nonzeros."""
    tensor, _ = taken_off(X)
    if not isinstance(tensor, np.ndarray):
        return SparseTensor.of(tensor)
    return as_sparse(Dense(tensor))
