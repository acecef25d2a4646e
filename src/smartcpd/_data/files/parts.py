"""Folders of parts, for sparse tensors larger than memory; see `smartcpd.partitions`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smartcpd._data.files.content import sparse_tensor
from smartcpd._data.files.format import Format, refuse_member
from smartcpd._data.labelled import taken_off
from smartcpd.partitions import PartitionedTensor, write_tensor


def _read(path: Path, member: str | None) -> Any:
    refuse_member(path, member, "tensor")
    return PartitionedTensor.open(path).labelled()


def _write(path: Path, X: Any) -> None:
    _, modes = taken_off(X)
    write_tensor(path, sparse_tensor(X), modes, getattr(X, "notes", ()))


FORMAT = Format("a folder of parts", (".parts",), _read, _write)
