"""A lock on a folder, so that no two fits write checkpoints to it at once."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: two fits on one folder are not noticed
    fcntl = None  # type: ignore[assignment]

from smartcpd.errors import CheckpointError

NAME = "lock"


class FolderLock:
    """The lock of one fit; it ends with the process at the latest, however that ends.

    File systems that know no locks have none; nothing is refused there.
    """

    def __init__(self, folder: Path) -> None:
        self._file = open(folder / NAME, "a+b")  # noqa: SIM115 - it stays open while the lock is held
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            owner = self._file.read(20).decode(errors="replace").strip() or "unknown"
            self._file.close()
            raise CheckpointError(
                f"Another fit (process {owner}) is writing its checkpoint to {folder}. Wait until "
                "it ends, or choose another folder."
            ) from None
        except OSError:
            return
        with contextlib.suppress(OSError):
            self._file.truncate(0)
            self._file.write(str(os.getpid()).encode())
            self._file.flush()

    def release(self) -> None:
        """Let another fit have the folder; the file stays, since somebody may wait for it."""
        self._file.close()
