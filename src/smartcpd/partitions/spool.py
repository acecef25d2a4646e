"""Temporary files for entries on their way to a partitioned folder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.storage.entries import (
    Entries,
    checked_columns,
    checked_shape,
    checked_values,
    smallest,
)
from smartcpd._data.storage.events import significance
from smartcpd.errors import InvalidParameterError
from smartcpd.partitions.manifest import entry_bytes

ROWS_AT_ONCE = 1 << 21
"""Number of entries that are divided among parts at a time."""


class Spool:
    """Two sets of plain files: entries in the order they came in, and those of each part."""

    def __init__(self, folder: Path, shape: tuple[int, ...]) -> None:
        folder.mkdir()
        self.folder = folder
        self.shape = shape
        self.mode = significance(shape)[0]
        self.count = 0
        self.rows = np.zeros(shape[self.mode], np.int64)
        """Number of entries in each row of the mode that is divided."""
        self.dtype: np.dtype = np.dtype(bool)
        self._pieces: list[int] = []

    @property
    def entry_bytes(self) -> int:
        return entry_bytes(self.shape, self.dtype)

    def add(self, indices: Any, values: Any) -> None:
        columns = checked_columns(indices)
        numbers = checked_values(values, columns[0].size)
        if not numbers.size:
            return
        if len(columns) != len(self.shape):
            raise InvalidParameterError(
                f"A piece has indices of {len(columns)} modes; the shape {self.shape} has "
                f"{len(self.shape)}."
            )
        checked_shape(columns, self.shape)
        self.dtype = np.promote_types(self.dtype, numbers.dtype)
        if self.dtype == np.float16:  # Parquet has no such type
            self.dtype = np.dtype(np.float32)
        narrow = [c.astype(smallest(size)) for c, size in zip(columns, self.shape, strict=True)]
        for path, column in zip(self._paths(len(self._pieces)), [*narrow, numbers], strict=True):
            np.save(path, column)
        self.rows += np.bincount(columns[self.mode], minlength=self.rows.size)
        self._pieces.append(numbers.size)
        self.count += numbers.size

    def divide(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Bring every entry to the files of the part that has its row."""
        lasts = np.array([last for _, last in ranges])
        for number, size in enumerate(self._pieces):
            paths = self._paths(number)
            columns = [np.load(path, mmap_mode="r") for path in paths]
            for start in range(0, size, ROWS_AT_ONCE):
                piece = [column[start : start + ROWS_AT_ONCE] for column in columns]
                self._append(np.searchsorted(lasts, piece[self.mode]), piece)
            del columns
            for path in paths:
                path.unlink()

    def _append(self, part: np.ndarray, piece: list[np.ndarray]) -> None:
        order = np.argsort(part, kind="stable")
        starts = np.flatnonzero(np.diff(part[order], prepend=-1))
        bounds = [*starts.tolist(), part.size]
        for start, stop in pairwise(bounds):
            chosen = order[start:stop]
            number = int(part[chosen[0]])
            for n, column in enumerate(piece):
                numbers = column[chosen]
                if n == len(self.shape):
                    numbers = numbers.astype(self.dtype)
                with open(self.folder / f"part-{number}-{n}", "ab") as file:
                    file.write(numbers.tobytes())

    def part(self, number: int) -> Entries:
        """Return the entries of a part, in any order; they can be read once."""
        dtypes = [smallest(size) for size in self.shape] + [self.dtype]
        columns = []
        for n, dtype in enumerate(dtypes):
            path = self.folder / f"part-{number}-{n}"
            columns.append(np.fromfile(path, dtype) if path.exists() else np.empty(0, dtype))
            path.unlink(missing_ok=True)
        return Entries(columns[:-1], columns[-1])

    def _paths(self, piece: int) -> list[Path]:
        """Return the files of a piece: one a mode, and one for the values."""
        return [self.folder / f"piece-{piece}-{n}.npy" for n in range(len(self.shape) + 1)]
