"""Writing entries, so that they are read back exactly."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from smartcpd._common.atomic import replaced
from smartcpd._data.tns.layout import MAX_INT64, PathLike
from smartcpd._kernels import text
from smartcpd.errors import InvalidDataError

ROWS_AT_ONCE = 1 << 16
GZIP_LEVEL = 4  # Python's default, 9, takes twelve times as long to save a tenth.


def write_tns(
    path: PathLike, indices: Sequence[np.ndarray], values: ArrayLike, shape: Sequence[int]
) -> None:
    """Write entries, whose indices count from 0, so that `read_tns` gives back the same.

    The file is compressed if its name ends with ``.gz``, and appears whole or not at all: one cut
    short would be read as a smaller tensor. A float32 is written as the float64 it equals.
    """
    values = np.asarray(values)
    indices = [np.asarray(index) for index in indices]
    _check_entries(indices, values, shape)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
    with _open_to_write(Path(path)) as file:
        file.write(f"# shape: {' '.join(str(int(size)) for size in shape)}\n".encode())
        for start in range(0, values.size, ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            file.write(_formatted([index[rows] for index in indices], values[rows]))


def _check_entries(indices: list[np.ndarray], values: np.ndarray, shape: Sequence[int]) -> None:
    if len(indices) != len(shape) or len(shape) == 0:
        raise InvalidDataError(
            f"{len(indices)} index arrays for the shape {tuple(shape)}: give one for each mode."
        )
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
        raise InvalidDataError(f"Cannot write values of dtype {values.dtype}: use float64.")
    if any(array.shape != (values.size,) for array in (values, *indices)):
        raise InvalidDataError(
            f"values of shape {values.shape} with index arrays of shapes "
            f"{[index.shape for index in indices]}: all must be vectors of one length."
        )
    for mode, (index, size) in enumerate(zip(indices, shape, strict=True)):
        if index.dtype.kind not in "iu":
            raise InvalidDataError(
                f"The indices of mode {mode} have dtype {index.dtype}: use integers."
            )
        for extreme in (index.min(initial=0), index.max(initial=0)):
            if index.size and not 0 <= extreme < size:
                raise InvalidDataError(
                    f"Index {extreme} of mode {mode} is outside 0 ... {size - 1}: indices count "
                    f"from 0, and the shape is {tuple(shape)}."
                )


@contextmanager
def _open_to_write(path: Path) -> Iterator[BufferedIOBase]:
    with replaced(path) as temporary, open(temporary, "xb") as file:
        if not path.name.endswith(".gz"):
            yield file
            return
        # Without a name and a time, equal entries give equal files.
        with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as compressed:
            yield compressed


def _formatted(indices: list[np.ndarray], values: np.ndarray) -> memoryview:
    """Return a line for each entry, in bytes."""
    columns = [index.astype(np.int64) + 1 for index in indices]
    words, starts, which = b"", np.zeros(1, np.int64), np.empty(0, np.int64)
    if values.dtype.kind in "biu" and values.max(initial=0) <= MAX_INT64:
        columns.append(values.astype(np.int64))
    else:
        words, starts, which = _as_words(values)
    longest = 21 * len(columns) + np.diff(starts).max(initial=0) + 1
    out = np.empty(longest * values.size, np.uint8)
    size = text.compiled_write_lines()(
        np.array(columns), np.frombuffer(words, np.uint8), starts, which, out
    )
    return out[:size].data


def _as_words(values: np.ndarray) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Return the different values as text, end to end; where each starts; and which entry has
    which.
    """
    # Values are compared by their bits, which tell -0.0 from 0.0 and are equal for equal NaN.
    bits, which = np.unique(values.view(np.int64), return_inverse=True)
    words = [repr(value) for value in bits.view(values.dtype).tolist()]
    starts = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return "".join(words).encode(), starts, which.astype(np.int64, copy=False)
