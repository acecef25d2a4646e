"""Arrays that stay where they are: what kinds there are, and where they are cheap to cut."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.storage.entries import MAX_ROWS
from smartcpd.errors import InvalidDataError, SmartCPDError

Edges = tuple[np.ndarray, ...]
"""For each mode, where blocks begin, and where the last one ends."""

CHUNKED = {"zarr": "a Zarr array", "h5py": "an HDF5 data set", "dask": "a Dask array"}
"""What messages call the arrays that tell their chunks, by the package that they come from."""

MANY_CHUNKS, MANY_CHUNKS_A_MODE = 1 << 14, 1 << 22
"""Number of chunks in all from which they must not be tiny, and the most that a mode may have."""
FEW_CELLS = 256
"""Cells of a chunk below which it takes longer to find than to read."""


@dataclass(frozen=True, eq=False)
class Source:
    """An array that is read by slices: one of Zarr, HDF5, Dask or xarray, or a NumPy memory map."""

    array: Any
    title: str
    """The name of the kind of array, for messages."""
    chunks: Edges | None
    """Where chunks begin and end; None for an array in C order that can be cut anywhere."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.array.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype)

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    def read(self, where: tuple[slice, ...]) -> np.ndarray:
        """Return the cells of a block; damage to what is on disk shows here."""
        try:
            return np.asarray(self.array[where])
        except (SmartCPDError, MemoryError):
            raise
        except Exception as error:  # libraries let errors of their codecs through, of any type
            said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            pairs = zip(where, self.shape, strict=True)
            cells = ", ".join(f"{part.start or 0}:{part.stop or size}" for part, size in pairs)
            raise InvalidDataError(
                f"X[{cells}] cannot be read from {self.title} of shape {self.shape} ({said}): it "
                "is damaged, or the file is gone. Fetch or write it again."
            ) from error

    def whole(self) -> np.ndarray:
        return self.read(tuple(slice(None) for _ in self.shape))


def source_of(X: Any) -> Source | None:
    """The source that X is; None if X is an array in memory, or nothing that is known here."""
    module = type(X).__module__.split(".")[0]
    if module in CHUNKED and hasattr(X, "chunks"):
        return _checked(X, CHUNKED[module], X.chunks)
    if module == "xarray" and hasattr(X, "encoding"):
        found = X.encoding.get("preferred_chunks") or {}
        sizes = [found.get(dim, size) for dim, size in zip(X.dims, X.shape, strict=True)]
        return _checked(X, "an xarray on disk", sizes if found else None)
    if isinstance(X, np.memmap):
        return _checked(X, "a memory map", None)
    return None


def _checked(X: Any, title: str, chunks: Sequence[Any] | None) -> Source:
    if np.dtype(X.dtype).kind not in "buif":
        raise InvalidDataError(f"X must hold real numbers; got {title} of dtype {X.dtype}.")
    shape = tuple(int(size) for size in X.shape)
    if len(shape) < 2 or 0 in shape or any(size != size for size in X.shape):
        raise InvalidDataError(
            f"X must have at least two modes, none of them empty; got {title} of shape {X.shape}."
        )
    if sum(shape) >= MAX_ROWS:
        raise InvalidDataError(
            f"{title} claims the shape {shape}, and its factors would have {sum(shape):,} rows in "
            f"all; the limit is {MAX_ROWS:,}. Pass a part of it."
        )
    if chunks:
        _check_chunks(title, shape, chunks)
    return Source(X, title, _edges(shape, chunks) if chunks else None)


def _check_chunks(title: str, shape: tuple[int, ...], chunks: Sequence[Any]) -> None:
    """Refuse chunks so small that reading them takes far longer than what is in them is worth."""
    pairs = list(zip(shape, chunks, strict=False))
    if len(chunks) != len(shape) or not all(_has_size(size, chunk) for size, chunk in pairs):
        raise InvalidDataError(
            f"{title} of shape {shape} says that its chunks have the sizes {tuple(chunks)}, which "
            "cannot be: it is damaged. Fetch or write it again."
        )
    counts = [len(c) if isinstance(c, tuple | list) else -(-n // int(c)) for n, c in pairs]
    total = math.prod(counts)
    cells = math.prod(shape) / max(total, 1)
    if max(counts) > MANY_CHUNKS_A_MODE or (total > MANY_CHUNKS and cells < FEW_CELLS):
        raise InvalidDataError(
            f"{title} of shape {shape} comes in {total:,} chunks of about {cells:,.3g} cells, and "
            f"each is read by itself. Store it in larger chunks, of {FEW_CELLS:,} cells at least."
        )


def _has_size(size: int, chunk: Any) -> bool:
    """Whether chunks, all of one size or each of its own, can be those of a mode."""
    if isinstance(chunk, tuple | list):
        return all(each >= 1 for each in chunk) and sum(chunk) == size
    return bool(chunk >= 1)


def _edges(shape: tuple[int, ...], chunks: Sequence[Any]) -> Edges:
    """Return the edges of chunks from their size, one number a mode or all sizes one by one."""
    edges = []
    for size, chunk in zip(shape, chunks, strict=True):
        if isinstance(chunk, tuple | list):
            edges.append(np.concatenate([[0], np.cumsum(chunk)]).astype(np.int64))
        else:
            edges.append(np.append(np.arange(0, size, int(chunk)), size).astype(np.int64))
    return tuple(edges)


def files_of(X: Any) -> list[Path]:
    """The files that an array is kept in; none where they are not known, or are not local."""
    module = type(X).__module__.split(".")[0]
    if module == "zarr":
        root = getattr(X.store, "root", None)
        return [] if root is None else _files_in(Path(root) / X.path)
    if module == "h5py":
        return _files_in(Path(X.file.filename))
    if module == "xarray":
        return _files_in(Path(str(X.encoding.get("source", ""))))
    if isinstance(X, np.memmap) and isinstance(X.filename, str | os.PathLike):
        return _files_in(Path(X.filename))
    return []


def _files_in(path: Path) -> list[Path]:
    if path.is_dir() and path != Path():
        return [file for file in path.rglob("*") if file.is_file()]
    return [path] if path.is_file() else []


def joined(edges: Edges, n_cells: float) -> Edges:
    """Join neighbouring chunks where they are small, in the modes with most of them first."""
    found = list(edges)
    while largest_block(found) < n_cells and any(len(e) > 2 for e in found):
        mode = max(range(len(found)), key=lambda k: len(found[k]))
        inner = found[mode]
        found[mode] = np.append(inner[:-1:2], inner[-1])
    return tuple(found)


def slabs(shape: tuple[int, ...], n_cells: float) -> Edges:
    """Return blocks of an array in C order, each a stretch of the file: cut in the leading modes
    only.
    """
    edges, a_row = [], math.prod(shape)
    for size in shape:
        a_row //= size
        rows = min(size, max(1, int(n_cells / a_row)))
        edges.append(np.append(np.arange(0, size, rows), size).astype(np.int64))
        if rows > 1:
            break
    edges += [np.array([0, size], np.int64) for size in shape[len(edges) :]]
    return tuple(edges)


def largest_block(edges: Sequence[np.ndarray]) -> int:
    """Return the number of cells of the largest block."""
    return math.prod(int(np.diff(e).max()) for e in edges)
