"""Tensors on their way into and out of files: real numbers, dense or sparse as a format wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.labelled import taken_off
from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._data.storage.conversion import as_sparse
from smartcpd.errors import InvalidDataError


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
