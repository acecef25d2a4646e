"""Writing partitioned folders: from a tensor in memory, or from pieces of a larger one."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.archives import write_archive
from smartcpd._common.atomic import replaced
from smartcpd._data.labels import Mode
from smartcpd._data.storage.entries import Entries, canonical
from smartcpd._data.storage.events import significance
from smartcpd._data.storage.sparse import ABSENT, SparseTensor
from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.partitions.figures import Figures
from smartcpd.partitions.manifest import FIGURES, LABELS, entry_bytes
from smartcpd.partitions.parquet import write_entries
from smartcpd.partitions.spool import Spool
from smartcpd.partitions.tensor import PartitionedTensor

N_PARTS = 64
"""Number of parts, enough to be shared out evenly among the workers of a cluster."""
LEAST_BYTES, MOST_BYTES = 4_000_000, 64_000_000
"""Bounds of the memory that a part takes: opening a file should take no time next to reading it,
and a few parts should fit next to the factors.
"""


def write_tensor(
    path: str | os.PathLike[str],
    X: SparseTensor,
    modes: Sequence[Mode] | None = None,
    notes: Sequence[str] = (),
    part_bytes: int | None = None,
) -> PartitionedTensor:
    """Write a tensor that is in memory as a partitioned folder.

    Parameters
    ----------
    path : path
        A folder that is to be made; its name ends with ``.parts``.
    X : SparseTensor
        The tensor.
    modes, notes, part_bytes : optional
        As for `write_pieces`.

    Returns
    -------
    PartitionedTensor

    Examples
    --------
    >>> from smartcpd import SparseTensor, partitions
    >>> X = SparseTensor([[0, 1], [1, 0]], [3, 4], shape=(2, 2))
    >>> partitions.write_tensor("events.parts", X)
    PartitionedTensor(2x2, 2 nonzeros in 1 part, int64, 'events.parts')
    """
    events = X.events
    if len(events) == 0:
        raise InvalidDataError(f"{X!r} has no entries, so there is nothing to divide into parts.")
    mode = significance(X.shape)[0]
    everything = Entries(list(events.indices), events.values, events.weights)
    counts = np.bincount(events.indices[mode], minlength=X.shape[mode])
    size = entry_bytes(X.shape, X.dtype, X.weighted)
    # Entries are sorted by this mode first, so that rows are stretches of them.
    ends = np.concatenate([[0], np.cumsum(counts)])
    figures = Figures(X.shape, X.absent, len(events))
    with _new_folder(Path(path)) as folder:
        for first, last in row_ranges(counts, size, part_bytes):
            stretch = everything.at(slice(ends[first], ends[last + 1]))
            _write_part(folder, figures, first, last, stretch)
        _write_summary(folder, figures, mode, modes, notes)
    return PartitionedTensor.open(path)


def write_pieces(
    path: str | os.PathLike[str],
    pieces: Iterable[tuple[Any, Any]],
    shape: Sequence[int],
    absent: str = "zero",
    *,
    modes: Sequence[Mode] | None = None,
    notes: Sequence[str] = (),
    part_bytes: int | None = None,
) -> PartitionedTensor:
    """Write a tensor that comes in pieces, each of which fits in memory, as a partitioned folder.

    Parameters
    ----------
    path : path
        A folder that is to be made; its name ends with ``.parts``.
    pieces : iterable of (indices, values)
        Cells in any order, as `SparseTensor` takes them. Values of one cell are added up, also
        those of different pieces.
    shape : sequence of int
        The length of each mode.
    absent : {"zero", "unobserved"}
        What a cell means that no piece names.
    modes : sequence of Mode, optional
        The names of the modes and the labels of their rows.
    notes : sequence of str
        What was left out or decided where the pieces were made.
    part_bytes : int, optional
        About how much memory a part takes; 4 to 64 MB by default, for 64 parts if that allows it.

    Returns
    -------
    PartitionedTensor

    Examples
    --------
    >>> from smartcpd import partitions
    >>> pieces = [([[0, 0]], [1]), ([[1, 1], [0, 0]], [2, 3])]
    >>> partitions.write_pieces("events.parts", pieces, shape=(2, 2)).load()
    SparseTensor(2x2, 2 nonzeros, 50 %, int64)
    """
    if absent not in ABSENT:
        raise InvalidParameterError(f"absent must be 'zero' or 'unobserved'; got {absent!r}.")
    target = Path(path)
    sizes = tuple(int(size) for size in shape)
    with _new_folder(target) as folder:
        spool = Spool(folder / "spool", sizes)
        for indices, values in pieces:
            spool.add(indices, values)
        if spool.count == 0:
            raise InvalidDataError(f"There are no entries to write to {target}.")
        ranges = row_ranges(spool.rows, spool.entry_bytes, part_bytes)
        spool.divide(ranges)
        figures = Figures(sizes, absent, spool.count)
        for number, (first, last) in enumerate(ranges):
            given = spool.part(number)
            entries = canonical(
                given.columns, given.values, None, sizes, keep_zeros=absent == "unobserved"
            )
            if entries.values.size:
                _write_part(folder, figures, first, last, entries)
        shutil.rmtree(folder / "spool")
        _write_summary(folder, figures, spool.mode, modes, notes)
    return PartitionedTensor.open(target)


def row_ranges(
    counts: np.ndarray, entry_bytes: int, part_bytes: int | None
) -> list[tuple[int, int]]:
    """Return neighbouring rows, first and last, for parts of about so many bytes, or of one row."""
    ends = np.cumsum(counts)
    if part_bytes is None:
        part_bytes = int(np.clip(entry_bytes * ends[-1] / N_PARTS, LEAST_BYTES, MOST_BYTES))
    n_parts = -(-int(ends[-1]) // max(1, part_bytes // entry_bytes))
    # About equally many entries in each, cut where rows end.
    wanted = ends[-1] * np.arange(1, n_parts) / n_parts
    cuts = np.unique(np.searchsorted(ends, wanted) + 1)
    cuts = cuts[(cuts > 0) & (cuts < counts.size)]
    starts = [0, *cuts.tolist()]
    return list(zip(starts, [*(c - 1 for c in cuts.tolist()), counts.size - 1], strict=True))


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder that becomes ``path`` when all is well, replacing one of that name."""
    old = path.with_name(f".{uuid.uuid4().hex}.{path.name}")
    with replaced(path) as folder:
        folder.mkdir()
        yield folder
        if path.is_dir():  # a folder that is not empty cannot be replaced
            os.rename(path, old)
    shutil.rmtree(old, ignore_errors=True)


def _write_part(folder: Path, figures: Figures, first: int, last: int, entries: Entries) -> None:
    if entries.values.dtype == np.float16:  # Parquet has no such type
        entries = replace(entries, values=entries.values.astype(np.float32))
    name = f"part-{len(figures.parts):05d}.parquet"
    write_entries(folder / name, entries)
    figures.add(name, first, last, entries)


def _write_summary(
    folder: Path, figures: Figures, mode: int, modes: Sequence[Mode] | None, notes: Sequence[str]
) -> None:
    """Write what the folder has besides its parts; the manifest last, which makes it complete."""
    if not figures.parts:
        raise InvalidDataError("All values are zero, so there is nothing to divide into parts.")
    manifest, arrays = figures.summary(mode, modes, notes)
    write_archive(folder / FIGURES, arrays)
    if modes is not None:
        labels = {f"labels_{n}": mode.labels for n, mode in enumerate(modes)}
        write_archive(folder / LABELS, labels)
    manifest.write(folder)
