"""MATLAB's files, of version 5 to 7 and 7.3 (HDF5).

A struct or object with the fields ``subs``, ``vals`` and ``size``, as the Tensor Toolbox saves a
sparse tensor, is read as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.files.content import real_array
from smartcpd._data.files.format import Format, Tensor, chosen_member, damaged
from smartcpd._data.files.hdf5 import read_dataset
from smartcpd._data.files.matlab5 import variables
from smartcpd._data.storage import SparseTensor
from smartcpd.errors import InvalidDataError, SmartCPDError

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
    try:
        contents = list(variables(path))
        shapes: dict[str, Sequence[int]] = {
            each.name: each.shape for each in contents if each.is_numeric
        }
        records = [each.name for each in contents if each.is_record]
        if member in records or (member is None and not shapes and len(records) == 1):
            name = member or records[0]
        else:
            name = chosen_member(path, member, shapes, [each.name for each in contents])
        found = next(each for each in contents if each.name == name).read()
        if isinstance(found, dict):
            return _sparse_tensor(path, name, found)
        return SparseTensor.of(found) if hasattr(found, "tocoo") else real_array(path, found)
    except (SmartCPDError, MemoryError):
        raise
    except Exception as error:  # what is no number where one should be shows in many ways
        raise damaged(path, "a MATLAB file", error) from None


def _sparse_tensor(path: Path, name: str, fields: dict[str, Any]) -> SparseTensor:
    subs, vals, size = (fields.get(field) for field in ("subs", "vals", "size"))
    if subs is None or vals is None or size is None:
        raise InvalidDataError(
            f"{path}::{name} is a structure with the fields {', '.join(fields)}; one that holds a "
            "sparse tensor has subs, vals and size."
        )
    shape = [int(length) for length in size.reshape(-1)]
    with np.errstate(invalid="ignore"):  # what is no whole number is out of bounds below
        cells = subs.reshape(-1, len(shape)).astype(np.int64) - 1
    return SparseTensor(cells, real_array(path, vals).reshape(-1), shape)


FORMAT = Format("a MATLAB file", (".mat",), _read)
