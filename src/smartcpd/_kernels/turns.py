"""Processes that need the same machine code at the same time take turns.

The first compiles it, and the others wait and load what it left on disk, where each would otherwise
spend the same seconds of a processor on the same code.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

PATIENCE = 120.0
"""Seconds after which a process compiles for itself, as when the one it waits for was stopped."""
PAUSE = 0.02
"""Seconds between two looks at whether the lock is free."""


class Turn:
    """A lock on a file, which the operating system lets go of when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def wait(self) -> None:
        """Wait for the lock; not where the folder or its file system does not allow for one."""
        with contextlib.suppress(OSError):
            os.makedirs(self._path.parent, exist_ok=True)
            self._file = open(self._path, "wb")  # noqa: SIM115
            _lock(self._file)

    def end(self) -> None:
        """Let the next process have its turn, if this one waited for its own.

        Those that wait have opened the file that is removed here; they get its lock all the same.
        """
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._file.close()
            self._file = None


def _lock(file: IO[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while fcntl is not None and time.monotonic() < deadline:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
