"""FROSTT's text files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smartcpd._data.files.content import sparse_tensor
from smartcpd._data.files.format import Format, refuse_member
from smartcpd._data.storage import SparseTensor
from smartcpd._data.tns import read_tns, write_tns
from smartcpd.errors import InvalidDataError


def _read(path: Path, member: str | None) -> SparseTensor:
    refuse_member(path, member, "tensor")
    indices, values, shape = read_tns(path)
    return SparseTensor(tuple(indices), values, shape)


def _write(path: Path, X: Any) -> None:
    tensor = sparse_tensor(X)
    if tensor.weighted:
        raise InvalidDataError(
            f"FROSTT text has no place for the weights and missing cells of {tensor!r}. Write "
            "SparseTensor(X.indices, X.values, X.shape) and keep the rest apart."
        )
    write_tns(path, list(tensor.indices), tensor.values, tensor.shape)


FORMAT = Format("FROSTT text", (".tns", ".tns.gz"), _read, _write)
