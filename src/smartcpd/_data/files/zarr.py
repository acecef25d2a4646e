"""Zarr's folders of chunks, of version 2 and 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
        refuse_code(path, array.metadata.to_dict())
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


def refuse_code(path: Path, metadata: Any) -> None:
    """Refuse an array one of whose codecs runs what is in its chunks.

    Zarr itself does so since some version, as does the package with the codecs; older ones that
    work otherwise do not.
    """
    for name in _codec_names(metadata):
        if "pickle" in name.lower():
            raise InvalidDataError(
                f"{path} is kept by the codec {name!r}, which runs programs that are in a file. "
                "Nothing of it was read."
            )


def _codec_names(entry: Any) -> Iterator[str]:
    """Yield the names in metadata, at any depth: codecs are objects, or what describes them."""
    if isinstance(entry, Mapping):
        for key, value in entry.items():
            if key in ("id", "name", "codec_id"):
                yield str(value)
            if key != "attributes":
                yield from _codec_names(value)
    elif isinstance(entry, list | tuple):
        for value in entry:
            yield from _codec_names(value)
    elif hasattr(entry, "codec_id"):
        yield str(entry.codec_id)


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
