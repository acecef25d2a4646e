"""The choice of which arrays are read in blocks, and which are simply loaded."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from smartcpd._common.memory import budget
from smartcpd._data.storage.dense import Dense
from smartcpd._data.tiled.source import Source, source_of
from smartcpd._data.tiled.storage import TiledArray
from smartcpd.errors import InvalidParameterError

LOADED_SHARE = 0.5
"""The share of the memory that an array may take if it is loaded as a whole."""
MAPPED = 1 << 26
"""Bytes from which on a memory map stays one. A map of a file that somebody cuts short while it is
in use ends the process."""


def loaded_if_small(X: Any, max_memory: str | int | None = None) -> Any:
    """Return X, loaded if it is an array on disk that is small enough for it."""
    found = source_of(X)
    if found is None or _is_large(found, max_memory):
        return X
    if isinstance(X, np.memmap):
        return X if X.nbytes > MAPPED else np.array(X)
    return native(found.whole())


def _is_large(source: Source, max_memory: str | int | None) -> bool:
    return source.n_cells * source.dtype.itemsize > LOADED_SHARE * budget(max_memory)


def native(array: np.ndarray) -> np.ndarray:
    """Return an array in this machine's byte order."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def opened(
    X: Any, mask: Any = None, weights: Any = None, max_memory: str | int | None = None
) -> Dense | TiledArray | None:
    """The storage of an array that is not in memory; None if X is no such array.

    One that is small enough is loaded. A memory map is left to be read in place, cell by cell,
    unless it is larger than a limit of the user's.
    """
    source = source_of(X)
    mapped = isinstance(X, np.memmap)
    if source is None or (mapped and max_memory is None):
        return None
    if not _is_large(source, max_memory):
        return None if mapped else Dense.of(source.whole(), _whole(mask), _whole(weights))
    parts = (("mask", mask), ("weights", weights))
    return TiledArray(
        source, budget(max_memory), *(_alike(name, part, source) for name, part in parts)
    )


def _whole(part: Any) -> Any:
    source = source_of(part)
    return part if source is None else source.whole()


def _alike(name: str, part: Any, source: Source) -> Any:
    """Return a mask or weights of the same shape, left where they are."""
    if part is None:
        return None
    found = source_of(part)
    if name == "weights" and found is None:
        with contextlib.suppress(ValueError):
            part = np.broadcast_to(part, source.shape)
    shape = np.shape(part) if found is None else found.shape
    if shape != source.shape:
        raise InvalidParameterError(
            f"{name} has shape {shape}, X {source.shape}; it needs one value for each cell."
        )
    return np.asarray(part) if found is None else found.array
