"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smartcpd.errors import InvalidParameterError


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A path to write to, in the same folder; what is there at the end becomes ``path``.

    After an error ``path`` is what it was before, and nothing else is left behind.
    """
    if not path.parent.is_dir():
        raise InvalidParameterError(
            f"Cannot write {path}: {path.parent} is not a directory. Create it first."
        )
    # The suffix stays at the end: some libraries choose a format by it, or add one.
    temporary = path.with_name(f".{uuid.uuid4().hex}.{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, safe on the disk when this returns."""
    with replaced(path) as temporary, open(temporary, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, content: str) -> None:
    """As `write_bytes`, in UTF-8."""
    write_bytes(path, content.encode())
