"""Files that are replaced whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smartcpd.errors import InvalidParameterError

WINDOWS = sys.platform == "win32"
PAUSES = (0.01, 0.1, 0.5)
"""Seconds between two attempts."""


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a file over another; on Windows again after a while, since a file that anybody reads
    at this moment, such as a virus scanner, cannot be replaced there.
    """
    for pause in PAUSES if WINDOWS else ():
        try:
            os.replace(temporary, path)
            return
        except PermissionError:
            time.sleep(pause)
    os.replace(temporary, path)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that whoever reads it sees all of it, or all of what it was before."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        put_in_place(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a path to write to, in the same folder; what is there at the end becomes ``path``.

    This serves writers that want a path. After an error ``path`` is what it was before, and nothing
    else is left behind.
    """
    if not path.parent.is_dir():
        raise InvalidParameterError(
            f"Cannot write {path}: {path.parent} is not a directory. Create it first."
        )
    # The end of the name stays: some libraries choose a format by it, or add one. The whole would
    # make names longer than file systems allow.
    temporary = path.with_name(f".{uuid.uuid4().hex}.{path.name[-20:]}")
    try:
        yield temporary
        put_in_place(temporary, path)
    except BaseException:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        temporary.unlink(missing_ok=True)
        raise
