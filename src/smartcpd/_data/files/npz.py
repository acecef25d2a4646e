"""NumPy's archives: one dense array, a sparse array of SciPy's, or a tensor of smartcpd's own.

The last has the arrays ``format`` ("smartcpd-tensor"), ``shape`` and ``values`` with ``index_0``,
``index_1``, ... and ``absent``, or ``array`` if it is dense; and where its modes have names, also
``names``, ``kinds`` and ``labels_0``, ``labels_1``, ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.archives import write_archive
from smartcpd._common.atomic import replaced
from smartcpd._common.memory import check_claim
from smartcpd._data.files.content import real_array
from smartcpd._data.files.format import Format, Tensor, chosen_member
from smartcpd._data.labelled import LabelledTensor, taken_off
from smartcpd._data.labels import Mode
from smartcpd._data.storage import SparseTensor
from smartcpd.errors import InvalidDataError, SmartCPDError

OWN = "smartcpd-tensor"
SCIPY_KEYS = {"format", "shape", "data"}


def _read(path: Path, member: str | None) -> Tensor:
    with open(path, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise InvalidDataError(f"{path} is a single array; rename it to end with .npy.")
            with archive:
                check_claim(path, sum(member.file_size for member in archive.zip.infolist()))
                return _chosen(path, member, archive)
        except (SmartCPDError, MemoryError):
            raise
        except Exception as error:  # NumPy lets errors of its parsers through, of many types
            reason = _reason(error)
            raise InvalidDataError(f"{path} cannot be read as a NumPy archive: {reason}") from None


def _chosen(path: Path, member: str | None, archive: Any) -> Tensor:
    names = set(archive.files)
    if member is None and "format" in names and _text(archive["format"]) == OWN:
        return _own(path, archive)
    if member is None and names >= SCIPY_KEYS:
        return _from_scipy(path)
    return _one_array(path, member, archive)


def _reason(error: Exception) -> str:
    if "Object arrays" in str(error):
        return (
            "it holds Python objects, which are never loaded because that can run code. "
            "Save plain numbers instead."
        )
    if "pickled" in str(error):
        return "it does not begin as one. Is its name right?"
    return f"it is truncated or damaged ({error}). Fetch or write it again."


def _text(array: np.ndarray) -> str:
    return str(array.item()) if array.ndim == 0 and array.dtype.kind == "U" else ""


def _one_array(path: Path, member: str | None, archive: Any) -> np.ndarray:
    if member is None and len(archive.files) == 1:
        return real_array(path, archive[archive.files[0]])
    wanted = [name for name in archive.files if name == member] or archive.files
    arrays = ((name, archive[name]) for name in wanted)
    shapes = {name: array.shape for name, array in arrays if array.dtype.kind in "buif"}
    return real_array(path, archive[chosen_member(path, member, shapes, archive.files)])


def _from_scipy(path: Path) -> SparseTensor:
    from scipy import sparse

    return SparseTensor.of(sparse.load_npz(path))


def _own(path: Path, archive: Any) -> Tensor:
    shape = tuple(archive["shape"].tolist())
    if "array" in archive.files:
        tensor: Any = real_array(path, archive["array"])
    else:
        indices = tuple(archive[f"index_{n}"] for n in range(len(shape)))
        tensor = SparseTensor(indices, archive["values"], shape, str(archive["absent"]))
    if "names" not in archive.files:
        return tensor
    kinds = archive["kinds"].tolist()
    modes = tuple(
        Mode(name, archive[f"labels_{n}"], kinds[n])
        for n, name in enumerate(archive["names"].tolist())
    )
    return LabelledTensor(tensor, modes)


def _write(path: Path, X: Any) -> None:
    tensor, modes = taken_off(X)
    if isinstance(tensor, np.ndarray):
        arrays = {"array": real_array(path, tensor)}
    else:
        tensor = SparseTensor.of(tensor)
        arrays = {f"index_{n}": column for n, column in enumerate(tensor.indices)}
        arrays |= {"values": tensor.values, "absent": np.array(tensor.absent)}
    if modes is not None:
        arrays |= {f"labels_{n}": mode.labels for n, mode in enumerate(modes)}
        arrays["names"] = np.array([mode.name for mode in modes])
        arrays["kinds"] = np.array([str(mode.kind) for mode in modes])
    if modes is not None or "array" not in arrays:
        arrays |= {"format": np.array(OWN), "shape": np.array(tensor.shape)}
    with replaced(path) as temporary:
        write_archive(temporary, arrays, compressed=True)


FORMAT = Format("a NumPy archive", (".npz",), _read, _write)
