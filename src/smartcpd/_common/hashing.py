"""Digests of arrays and files: every byte counts, and memory for a copy is never needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

PIECE = 1 << 24
"""Bytes that are copied or read at once."""
LENGTH = 16
"""Bytes of a digest."""

Bytes = bytes | memoryview


def digest(parts: Iterable[Bytes]) -> str:
    """Return the digest of bytes that follow each other.

    SHA-256 is what processors compute fastest of those that nobody knows how to deceive.
    """
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[: 2 * LENGTH]


def array_bytes(array: np.ndarray) -> Iterator[Bytes]:
    """Yield all bytes of an array in the order of its cells, wherever they lie in memory."""
    if array.flags.c_contiguous:
        yield array.reshape(-1).view(np.uint8).data
        return
    rows = max(1, array.shape[0] * PIECE // max(array.nbytes, 1))
    for start in range(0, array.shape[0], rows):
        yield array[start : start + rows].tobytes()


def file_bytes(path: Path) -> Iterator[bytes]:
    """Yield all bytes of a file."""
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            yield piece


def file_facts(paths: Iterable[Path]) -> Iterator[bytes]:
    """Yield the name, size and time of change of each file."""
    for path in sorted(paths):
        about = path.stat()
        yield f"{path.name} {about.st_size} {about.st_mtime_ns}\n".encode()
