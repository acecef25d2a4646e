"""Tensors in files: read and written by name, and never by running code from a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from smartcpd._data.files import hdf5, mat, netcdf, npy, npz, parts, tns, zarr
from smartcpd._data.files.format import Format, Tensor
from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.storage import SparseStorage
from smartcpd._data.tiled import loaded_if_small
from smartcpd.errors import DataNotFoundError, IncompatibleError, InvalidParameterError

FORMATS = tuple(module.FORMAT for module in (tns, npy, npz, mat, zarr, netcdf, hdf5, parts))
TABLES = (
    *(".csv", ".tsv", ".txt", ".parquet", ".json", ".jsonl", ".ndjson", ".feather", ".arrow"),
    *(".xlsx", ".db", ".sqlite"),
)

__all__ = ["FORMATS", "Format", "format_of", "read", "write"]


def read(
    path: str | os.PathLike[str], absent: str = "zero", max_memory: str | int | None = None
) -> Tensor:
    """Read a tensor from a file; the end of its name says which kind of file it is.

    =====================  ===================================================================
    ``.tns``, ``.tns.gz``  FROSTT text: a nonzero a line, its indices counted from 1, its value
    ``.npy``               an array, mapped into memory from 64 MB on
    ``.npz``               the only array of an archive, a sparse array saved by SciPy, or a
                           tensor saved by `write`
    ``.mat``               MATLAB, version 5 to 7.3; also a sparse tensor of the Tensor Toolbox
    ``.zarr``              Zarr, version 2 and 3
    ``.nc``                netCDF; the coordinates become labels
    ``.h5``, ``.hdf5``     a data set of an HDF5 file
    ``.parts``             a folder of parts, for sparse tensors larger than memory; opened only
    =====================  ===================================================================

    Where a file holds several arrays, name one after two colons: ``"runs.npz::X"``.

    Parameters
    ----------
    path : path
        The file.
    absent : {"zero", "unobserved"}
        What the cells that a sparse file does not name mean; see `SparseTensor`.
    max_memory : str or int, optional
        As for `SmartCPD`: an array of Zarr or HDF5 that is larger is opened only.

    Returns
    -------
    SparseTensor, PartitionedTensor, ndarray, LabelledTensor, or an open array of Zarr or h5py

    See Also
    --------
    smartcpd.from_table : CSV, Parquet and other tables.

    Examples
    --------
    >>> import numpy as np
    >>> import smartcpd
    >>> np.save("counts.npy", np.arange(6).reshape(2, 3))
    >>> smartcpd.read("counts.npy").shape
    (2, 3)
    """
    file, member = split(path)
    form = format_of(file)
    if not file.exists():
        raise DataNotFoundError(f"{file} does not exist; check the path.")
    tensor = loaded_if_small(form.read(file, member), max_memory)
    if absent == "zero":
        return tensor
    inner = tensor.tensor if isinstance(tensor, LabelledTensor) else tensor
    if not isinstance(inner, SparseStorage):
        raise IncompatibleError(
            f"absent={absent!r} is about cells that a sparse file does not store, but {file} "
            "stores every cell."
        )
    inner = inner.with_absent(absent)
    return LabelledTensor(inner, tensor.modes) if isinstance(tensor, LabelledTensor) else inner


def write(path: str | os.PathLike[str], X: Any) -> None:
    """Write a tensor to a file of the kind that its name ends with.

    ``.tns``, ``.tns.gz``, ``.npz`` and ``.parts`` keep sparse tensors sparse; ``.npy``, ``.zarr``,
    ``.nc`` and ``.h5`` store every cell, and refuse a tensor that would need more than a gigabyte.
    ``.npz``, ``.nc`` and ``.parts`` keep names and labels. `read` gives back the same numbers.

    Parameters
    ----------
    path : path
        The file, which is replaced if it exists.
    X : SparseTensor, array, LabelledTensor, or a sparse array of SciPy, pydata or pyttb
        The tensor.

    Examples
    --------
    >>> import smartcpd
    >>> X = smartcpd.SparseTensor([[0, 1], [1, 0]], [3, 4], shape=(2, 2))
    >>> smartcpd.write("events.npz", X)
    >>> smartcpd.read("events.npz")
    SparseTensor(2x2, 2 nonzeros, 50 %, int64)
    """
    if not isinstance(path, str | os.PathLike):
        swapped = isinstance(X, str | os.PathLike)
        raise InvalidParameterError(
            f"path must be the name of a file; got {type(path).__name__}."
            + (f" The path comes first: write({os.fspath(X)!r}, X)." if swapped else "")
        )
    form = format_of(path)
    if form.write is None:
        raise InvalidParameterError(
            f"{Path(path).name!r}: {form.title} is only read. Write to a name that ends with "
            f"{_endings(f for f in FORMATS if f.write)}."
        )
    form.write(Path(path), X)


def split(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Return the file, and the array in it that is named after two colons."""
    file, colons, member = os.fspath(path).rpartition("::")
    return (Path(file), member) if colons else (Path(member), None)


def is_tensor_file(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of a tensor, not of a table."""
    return _format(split(path)[0]) is not None


def format_of(path: str | os.PathLike[str]) -> Format:
    """Return the format that the name of a file ends with."""
    found = _format(Path(path))
    if found is not None:
        return found
    name = Path(path).name
    if name.lower().removesuffix(".gz").endswith(TABLES):
        raise InvalidParameterError(
            f"{name!r} is the name of a table, not of a tensor: say which columns are its modes, "
            "smartcpd.from_table(path, modes=[...])."
        )
    raise InvalidParameterError(
        f"{name!r} is not a name for a tensor: it must end with {_endings(FORMATS)}."
    )


def _format(path: Path) -> Format | None:
    name = path.name.lower()
    return next((form for form in FORMATS if name.endswith(form.suffixes)), None)


def _endings(formats: Any) -> str:
    *others, last = [suffix for form in formats for suffix in form.suffixes]
    return f"{', '.join(others)} or {last}"
