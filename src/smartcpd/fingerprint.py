"""Whether two tensors are the same, told by a few characters."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from smartcpd.labels import taken_off
from smartcpd.storage import SparseTensor, as_storage

PIECE = 1 << 20


def fingerprint(X: Any, absent: str = "zero") -> str:
    """The SHA-256 of a tensor: its shape, its cells and what they hold, and its labels.

    Equal tensors have equal fingerprints, whatever the order in which entries came or the memory
    layout of an array. A dense and a sparse tensor are never equal.
    """
    digest = hashlib.sha256()
    tensor, modes = taken_off(X)
    storage: Any = as_storage(tensor, absent)
    if isinstance(storage, SparseTensor):
        digest.update(f"sparse {storage.shape} {storage.absent}".encode())
        for column in (*storage.indices, storage.values):
            _add(digest, column)
    else:
        digest.update(f"dense {storage.shape}".encode())
        for _, slab in storage.slabs():
            _add(digest, slab)
    for mode in modes or ():
        digest.update(f"{mode.name} {mode.kind}".encode(errors="surrogatepass"))
        _add(digest, mode.labels)
    return digest.hexdigest()


def _add(digest: Any, array: np.ndarray) -> None:
    digest.update(array.dtype.str.encode())
    for start in range(0, len(array), PIECE):
        digest.update(np.ascontiguousarray(array[start : start + PIECE]).tobytes())
