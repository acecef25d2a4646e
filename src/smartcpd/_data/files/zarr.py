"""Zarr's folders of chunks, of version 2 and 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.atomic import replaced
from smartcpd._data.files.content import dense_array, real_array
from smartcpd._data.files.format import Format, chosen_member, library, refuse_member
from smartcpd.errors import InvalidDataError, InvalidParameterError, SmartCPDError


def _read(path: Path, member: str | None) -> Any:
    """Return the array without reading it."""
    zarr = library(path, "zarr")
    try:
        array = _found(path, zarr.open(str(path), mode="r"), member)
        held = object if array.dtype.kind == "O" else array.dtype
    except (SmartCPDError, MemoryError):
        raise
    except Exception as error:  # zarr lets errors of its metadata parsers through, of any type
        raise InvalidDataError(
            f"{path} cannot be read as Zarr: there is no array or group in it, or it is damaged "
            f"({str(error).rstrip('.')})."
        ) from None
    real_array(path, np.empty(0, held))
    return array


def _found(path: Path, node: Any, member: str | None) -> Any:
    if hasattr(node, "shape"):
        refuse_member(path, member, "array")
        return node
    members = node.members(max_depth=None)
    arrays = {name: array for name, array in members if hasattr(array, "shape")}
    shapes = {name: a.shape for name, a in arrays.items() if a.dtype.kind in "buif"}
    return arrays[chosen_member(path, member, shapes, list(arrays))]


def _write(path: Path, X: Any) -> None:
    zarr = library(path, "zarr")
    array = dense_array(path, X)
    if path.exists():
        raise InvalidParameterError(f"{path} exists already; remove it or choose another name.")
    with replaced(path) as temporary:
        zarr.save_array(str(temporary), array)


FORMAT = Format("Zarr", (".zarr",), _read, _write)
