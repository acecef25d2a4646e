"""MATLAB's files, of version 5 to 7 (read by SciPy) and 7.3 (HDF5).

A struct or object with the fields ``subs``, ``vals`` and ``size``, as the Tensor Toolbox saves a
sparse tensor, is read as one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.files.content import real_array
from smartcpd._data.files.format import Format, Tensor, chosen_member, damaged
from smartcpd._data.files.hdf5 import read_dataset
from smartcpd._data.storage import SparseTensor
from smartcpd.errors import InvalidDataError, SmartCPDError

NUMERIC = {"double", "single", "logical", "sparse"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
RECORDS = {"struct", "object"}
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
MATLAB_HEADER = 512
"""Bytes that MATLAB writes before the HDF5 file."""


def _read(path: Path, member: str | None) -> Tensor:
    with open(path, "rb") as file:
        start = file.read(MATLAB_HEADER + len(HDF5_SIGNATURE))
    if start.endswith(HDF5_SIGNATURE) or start.startswith(HDF5_SIGNATURE):
        # MATLAB stores columns first, HDF5 rows first: the modes arrive in reverse.
        # Beneath #refs# are the parts of cells and structs, which have no names of their own.
        array = read_dataset(path, member, lambda name: not name.startswith("#"))
        return array.transpose()
    return _read_version_5(path, member)


def _read_version_5(path: Path, member: str | None) -> Tensor:
    from scipy import io

    try:
        contents = io.whosmat(path)
        shapes = {name: shape for name, shape, kind in contents if kind in NUMERIC}
        records = [name for name, _, kind in contents if kind in RECORDS]
        if member in records or (member is None and not shapes and len(records) == 1):
            name = member or records[0]
            return _sparse_tensor(path, name, io.loadmat(path, variable_names=[name])[name])
        name = chosen_member(path, member, shapes, [name for name, _, _ in contents])
        found = io.loadmat(path, variable_names=[name])[name]
        return SparseTensor.of(found) if hasattr(found, "tocoo") else real_array(path, found)
    except (SmartCPDError, MemoryError):
        raise
    except Exception as error:  # SciPy lets errors of its parsers through, of many types
        raise damaged(path, "a MATLAB file", error) from None


def _sparse_tensor(path: Path, name: str, record: Any) -> SparseTensor:
    fields = record.dtype.names or ()
    if not {"subs", "vals", "size"} <= set(fields) or record.size != 1:
        raise InvalidDataError(
            f"{path}::{name} is a structure with the fields {', '.join(fields)}; one that holds a "
            "sparse tensor has subs, vals and size."
        )
    subs, vals, size = (np.asarray(record[field].item()) for field in ("subs", "vals", "size"))
    shape = [int(length) for length in size.reshape(-1)]
    cells = subs.reshape(-1, len(shape)).astype(np.int64) - 1
    return SparseTensor(cells, real_array(path, vals).reshape(-1), shape)


FORMAT = Format("a MATLAB file", (".mat",), _read)
