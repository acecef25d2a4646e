"""Digests of bytes and files, of which all is read and little is in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

PIECE = 1 << 24
"""Bytes that are read at once."""
LENGTH = 16
"""Bytes of a digest."""


def digest(parts: Iterable[bytes]) -> str:
    """Return the digest of bytes that follow each other.

    SHA-256 is what processors compute fastest of those that nobody knows how to deceive.
    """
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[: 2 * LENGTH]


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
