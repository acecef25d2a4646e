"""Tensors in files: read by name, written by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.storage import SparseTensor
from smartcpd.tns import read_tns, write_tns

TEXT = (".tns", ".tns.gz")


def read(path: str | os.PathLike[str], absent: str = "zero") -> SparseTensor:
    """Read a sparse tensor from a FROSTT text file, ``.tns`` or ``.tns.gz``.

    One entry a line: its indices, counted from 1, and its value. Comments, blank lines and the
    headers that other tools write are understood; a malformed line is refused with its number.

    Parameters
    ----------
    path : path
    absent : {"zero", "unobserved"}
        What the cells that the file does not name mean; see `SparseTensor`.

    Returns
    -------
    SparseTensor
    """
    _check_name(path)
    indices, values, shape = read_tns(path)
    return SparseTensor(tuple(indices), values, shape, absent)


def write(path: str | os.PathLike[str], X: Any) -> None:
    """Write a sparse tensor as FROSTT text, ``.tns`` or ``.tns.gz``; `read` gives it back exactly.

    Parameters
    ----------
    path : path
    X : SparseTensor, or a sparse array of SciPy, pydata or pyttb
    """
    _check_name(path)
    tensor = SparseTensor.of(X)
    if tensor.weighted:
        raise InvalidDataError(
            f"FROSTT text has no place for the weights and missing cells of {tensor!r}. Write "
            "SparseTensor(X.indices, X.values, X.shape) and keep the rest apart."
        )
    write_tns(path, list(tensor.indices), tensor.values, tensor.shape)


def _check_name(path: str | os.PathLike[str]) -> None:
    if not str(path).endswith(TEXT):
        raise InvalidParameterError(
            f"{Path(path).name!r} is not a name for a sparse tensor: it must end with "
            f"{' or '.join(TEXT)}."
        )
