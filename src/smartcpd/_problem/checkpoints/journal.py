"""The journal of a fit: what it has done so far, stage by stage.

A fit is a program of deterministic *stages*, some inside others, and of *loops* inside those. To go
on with one, the same program runs again: a stage that is in the journal returns its result at once,
and a loop that is there goes on from the state it was last seen in. Whatever lies between stages
runs again; it must depend on nothing but their results and on the state that they leave behind.

Several starts of one fit may run side by side, so that each has a journal, and a file, of its own.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from smartcpd._problem.checkpoints.files import HEADER, SUFFIX, read_tree, write_tree
from smartcpd._problem.checkpoints.folder_lock import FolderLock
from smartcpd._problem.checkpoints.identity import Identity, check_same
from smartcpd._problem.checkpoints.values import freeze, restore, thaw
from smartcpd.errors import CheckpointError

T = TypeVar("T")
MODELS = 60
"""About how many arrays of the size of a model a checkpoint holds: a quasi-Newton method remembers
its last 20 steps, two arrays each.
"""


@dataclass
class Node:
    """The progress of a stage or a loop."""

    children: list[Node] = field(default_factory=list)
    done: bool = False
    result: Any = None
    world: Any = None
    """The state of what the stage changes, after it or, for a loop, when it was last seen. Only the
    last of several completed stages has it: the next one changes it anyway.
    """
    cursor: int = 0

    def plain(self) -> dict[str, Any]:
        children = [child.plain() for child in self.children]
        return {"d": self.done, "r": self.result, "w": self.world, "c": children}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Node:
        return cls([cls.of(child) for child in plain["c"]], plain["d"], plain["r"], plain["w"])


@dataclass
class Journal:
    """A record of the completed stages of a fit; without a path it keeps nothing, and costs
    nothing.
    """

    path: Path | None = None
    every: float = 30.0
    """Seconds between two writes."""
    root: Node = field(default_factory=Node)
    mark: str = ""
    """The fit, and the part of it, that files are bound to."""
    lock: FolderLock | None = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        if self.lock is not None:
            self.lock.release()

    def __post_init__(self) -> None:
        self._stack = [self.root]
        self._written = time.monotonic()

    def branch(self, name: str) -> Journal:
        """Return the journal of a part of the fit that may run beside others."""
        if self.path is None:
            return self
        path = self.path / f"{name}{SUFFIX}"
        mark = f"{name} {self.mark}"
        root = Node.of(read_tree(path, mark)) if path.exists() else Node()
        return Journal(path, self.every, root, mark)

    def stage(
        self,
        world: Sequence[Any],
        compute: Callable[[], T],
        complete: Callable[[T], bool] = lambda result: True,
    ) -> T:
        """Return what ``compute`` returns, now or when it was completed before.

        ``world`` are the objects that it changes. A result that is not ``complete`` is not kept.
        """
        if self.path is None:
            return compute()
        scope = self._stack[-1]
        node = self._next(scope)
        if node.done:
            self._put_back(world, node)
            return thaw(node.result)
        depth = len(self._stack)
        try:
            self._stack.append(node)
            result = compute()
        finally:
            del self._stack[depth:]
        if complete(result):
            # An interrupt may come between any two lines: a stage is done once all of it is kept,
            # and what the stage before it had kept goes only then.
            node.result, node.world = freeze(result), [freeze(part) for part in world]
            node.done = True
            node.children = []
            for before in scope.children[: scope.cursor - 1]:
                before.world = None
            self._write_if_due()
        return result

    def loop(self, world: Sequence[Any]) -> Callable[[], None]:
        """Return a function to be called after each step of a loop that changes nothing but
        ``world``.

        If the loop was interrupted before, ``world`` is now what it was then.
        """
        if self.path is None:
            return lambda: None
        node = self._next(self._stack[-1])
        self._put_back(world, node)

        def seen() -> None:
            if self._due:
                node.world = [freeze(part) for part in world]
                self.write()

        return seen

    def write(self) -> None:
        """Write everything to disk; if that is impossible now, the fit is worth more than its
        checkpoint and goes on.
        """
        if self.path is None:
            return
        try:
            write_tree(self.path, self.root.plain(), self.mark)
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self.path} could not be written ({error.strerror or error}); the "
                "fit goes on, and could only be resumed from the checkpoint before.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._written = time.monotonic()

    def _next(self, scope: Node) -> Node:
        if scope.cursor == len(scope.children):
            scope.children.append(Node())
        node = scope.children[scope.cursor]
        scope.cursor += 1
        node.cursor = 0
        return node

    def _put_back(self, world: Sequence[Any], node: Node) -> None:
        if node.world is not None:
            for part, plain in zip(world, node.world, strict=True):
                restore(part, plain)

    @property
    def _due(self) -> bool:
        return time.monotonic() - self._written >= self.every

    def _write_if_due(self) -> None:
        if self._due:
            self.write()


def entropy_in(folder: str | os.PathLike[str]) -> int | None:
    """Return the seed of a fit that was given none, if there is a checkpoint of it."""
    header = Path(folder) / HEADER
    return Identity.read(header).entropy if header.exists() else None


def opened(
    folder: str | os.PathLike[str],
    identity: Identity,
    every: float,
    resume: bool,
    n_parameters: int,
) -> Journal:
    """Return the journal of a fit in a folder, which is made if need be.

    A fit that goes on must be the fit that was begun; another one begins with an empty folder. The
    folder is locked until the journal is closed.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        _prepare(path, identity, resume, n_parameters)
    except BaseException:
        lock.release()
        raise
    return Journal(path, every, mark=identity.mark, lock=lock)


def _prepare(path: Path, identity: Identity, resume: bool, n_parameters: int) -> None:
    """Make a folder, which is locked, ready for a fit."""
    header = path / HEADER
    try:
        for unfinished in path.glob(".*.tmp"):
            unfinished.unlink()
        if resume and header.exists():
            check_same(Identity.read(header), identity, path)
        else:
            for old in path.glob(f"*{SUFFIX}"):
                old.unlink()
            identity.write(header)
        free = shutil.disk_usage(path).free
    except OSError as error:
        raise _unwritable(path, error) from error
    needed = 2 * MODELS * 8 * n_parameters  # a checkpoint is replaced by one beside it
    if free < needed:
        raise CheckpointError(
            f"Checkpoints in {path} need about {needed / 1e6:,.3g} MB, and the disk has "
            f"{free / 1e6:,.3g} MB left. Choose another folder, or fit without checkpoints."
        )


def _unwritable(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"Checkpoints cannot be written to {path}: {error.strerror or error}. Choose another "
        "folder, or fit without checkpoints."
    )
