"""NumPy's files of one array, mapped into memory so that a large one is read as it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.atomic import replaced
from smartcpd._data.files.content import dense_array, real_array
from smartcpd._data.files.format import Format, refuse_member
from smartcpd.errors import InvalidDataError


def _read(path: Path, member: str | None) -> np.ndarray:
    refuse_member(path, member, "array")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # NumPy lets errors of its parsers through, of many types
        raise InvalidDataError(
            f"{path} cannot be read as a NumPy array: {_reason(error)}."
        ) from None
    if not isinstance(array, np.ndarray):  # it is an archive under another name
        raise InvalidDataError(f"{path} is a NumPy archive; rename it to end with .npz.")
    return real_array(path, array)


def _reason(error: Exception) -> str:
    said = str(error)
    if "Python objects" in said or "Object arrays" in said:
        return "it holds Python objects, which are never loaded because that can run code"
    if "pickled" in said:
        return "it does not begin as one"
    return f"it is truncated or damaged ({said.splitlines()[0] if said else 'it ends early'})"


def _write(path: Path, X: Any) -> None:
    array = dense_array(path, X)
    with replaced(path) as temporary:
        np.save(temporary, array, allow_pickle=False)


FORMAT = Format("a NumPy array", (".npy",), _read, _write)
