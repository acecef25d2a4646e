"""The checkpoints in the folder of a run: one a run that was begun and has not ended."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from smartcpd._problem.checkpoints.files import HEADER, SUFFIX
from smartcpd._problem.checkpoints.folder_lock import NAME as LOCK
from smartcpd._problem.checkpoints.folder_lock import FolderLock
from smartcpd.errors import CheckpointError

NAME = "checkpoint"


class CheckpointFolders:
    """Folders ``checkpoint``, ``checkpoint-2`` and so on, of which the last is the current one.

    A run that is to replace another has a checkpoint of its own, so that the other can still be
    resumed if the new one fails.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun: Path | None = None

    @property
    def current(self) -> Path:
        """The checkpoint of the run that goes on: of a new one, or the last that was begun."""
        found = self._numbers()
        return self._begun or self._path(max(found, default=1))

    @property
    def resumable(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return (self.current / HEADER).exists()

    def begin(self) -> None:
        """Let a new run have a checkpoint of its own; raise an error while another one runs."""
        numbers = self._numbers()
        for number in numbers:
            if _is_ours(self._path(number)):
                FolderLock(self._path(number)).release()
        path = self._path(max(numbers, default=0) + 1)
        try:
            path.mkdir()  # of two that begin at once, one makes it
        except FileExistsError:
            raise CheckpointError(
                f"Another fit has just begun in {self._folder}. Wait until it ends, or choose "
                "another folder."
            ) from None
        self._begun = path

    def abandon(self) -> None:
        """Remove the checkpoint that this run has begun, and none of another run."""
        if self._begun is not None:
            shutil.rmtree(self._begun, ignore_errors=True)

    def drop(self) -> None:
        """Remove the checkpoints of this run, which has ended, and of those that it replaces."""
        for number in self._numbers():
            if _is_ours(self._path(number)):
                shutil.rmtree(self._path(number), ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self._folder / (NAME if number == 1 else f"{NAME}-{number}")

    def _numbers(self) -> list[int]:
        found = [re.fullmatch(rf"{NAME}(?:-(\d+))?", p.name) for p in self._folder.glob(f"{NAME}*")]
        return [int(match[1] or 1) for match in found if match]


def _is_ours(path: Path) -> bool:
    """Whether a folder holds nothing but what checkpoints are made of."""
    return path.is_dir() and all(
        file.name in (HEADER, LOCK) or file.suffix in (SUFFIX, ".tmp") for file in path.iterdir()
    )
