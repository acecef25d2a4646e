"""Reading the entries: blocks of whole lines are parsed by several threads and joined in order."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import BufferedIOBase
from typing import NamedTuple

import numpy as np

from smartcpd._common import threads
from smartcpd._data.tns.layout import (
    MAX_INT64,
    TOKEN,
    BadLineError,
    Layout,
    PathLike,
    Shape,
    columns_of,
    read_layout,
    shown,
)
from smartcpd._kernels import text
from smartcpd.errors import InvalidDataError

BLOCK_BYTES = 1 << 18
MAX_UINT32 = 2**32 - 1
GZIP_MAGIC = b"\x1f\x8b"
INTEGER = re.compile(rb"[+-]?0*[1-9]\d{0,19}")


class _Piece(NamedTuple):
    """The entries of a block, each column in the smallest type that holds it."""

    indices: list[np.ndarray]
    values: np.ndarray
    n_lines: int


def read_tns(
    path: PathLike, n_threads: int | None = None
) -> tuple[list[np.ndarray], np.ndarray, Shape]:
    """Read the entries of a ``.tns`` or ``.tns.gz`` file, in the order of the file.

    Returns
    -------
    indices : one array a mode, counting from 0, in the smallest of uint8, uint16, uint32 and int64.
    values : integers if all are written as integers, in the smallest of these types (uint64 if one
        needs it and none is negative); otherwise float64, each as ``float`` reads it.
    shape : from the header, or else the largest index of each mode.
    """
    with _open_to_read(path) as file:
        layout = read_layout(file, path)
        file.seek(layout.start)
        pieces = list(_read_pieces(file, layout, path, threads.resolve(n_threads)))
    columns = [[piece.indices[mode] for piece in pieces] for mode in range(layout.order)]
    columns.append([piece.values for piece in pieces])
    del pieces
    # Each column's pieces are released as soon as they are joined.
    *indices, values = [_joined(columns.pop(0)) for _ in range(layout.order + 1)]
    _check_count(values.size, layout, path)
    shape = layout.shape or tuple(int(index.max()) + 1 for index in indices)
    return indices, values, shape


@contextmanager
def _open_to_read(path: PathLike) -> Iterator[BufferedIOBase]:
    with open(path, "rb") as file:
        compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    try:
        with gzip.open(path) if compressed else open(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidDataError(
            f"{os.fspath(path)} cannot be decompressed ({error}). It is truncated or damaged: "
            "fetch or write it again."
        ) from error


def _read_pieces(
    file: BufferedIOBase, layout: Layout, path: PathLike, n_threads: int
) -> Iterator[_Piece]:
    text.compiled_parse_entries()  # Compiled once, before there are threads that would each do it.
    n_lines = layout.lines_before
    waiting: deque[Future[_Piece]] = deque()

    def next_piece() -> _Piece:
        nonlocal n_lines
        try:
            piece = waiting.popleft().result()
        except BadLineError as bad:
            raise bad.in_file(path, n_lines) from None
        n_lines += piece.n_lines
        return piece

    with ThreadPoolExecutor(n_threads) as pool:
        for block in _blocks(file):
            waiting.append(pool.submit(_parse, block, layout))
            if len(waiting) > 2 * n_threads:
                yield next_piece()
        while waiting:
            yield next_piece()


def _blocks(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield the rest of a file, whole lines at a time; at least one block, and each ends a line."""
    while True:
        block = file.read(BLOCK_BYTES)
        is_last = len(block) < BLOCK_BYTES
        block += file.readline()
        yield block if block.endswith(b"\n") else block + b"\n"
        if is_last:
            return


def _parse(block: bytes, layout: Layout) -> _Piece:
    # An entry takes two bytes a column, a digit and what follows it, or more.
    capacity = len(block) // (2 * (layout.order + 1)) + 1
    indices = np.empty((layout.order, capacity), np.int64)
    numbers = np.empty(capacity, np.int64)
    floats = numbers.view(np.float64)
    odd = np.empty((capacity, 2), np.int64)
    n_entries, n_lines, n_odd, floating, refused = text.compiled_parse_entries()(
        np.frombuffer(block, np.uint8),
        np.array(layout.limits, np.int64),
        indices,
        numbers,
        floats,
        odd,
    )
    values = (floats if floating else numbers)[:n_entries]
    # Odd values come before the line refused, if one was.
    values = _with_odd_values(values, odd[:n_odd], block)
    if refused >= 0:
        content = block[refused : block.index(b"\n", refused)]
        raise BadLineError(n_lines + 1, content, _complaint(columns_of(content), layout))
    return _Piece([_joined([index[:n_entries]]) for index in indices], _joined([values]), n_lines)


def _joined(pieces: list[np.ndarray]) -> np.ndarray:
    """Join pieces to a copy in the smallest type that holds it all."""
    return np.concatenate(pieces, dtype=_smallest_type(*pieces), casting="unsafe")


def _smallest_type(*parts: np.ndarray) -> np.dtype:
    """Return the smallest unsigned type up to 32 bits; else int64, uint64 or, failing these,
    float64.
    """
    if any(part.dtype.kind == "f" for part in parts):
        return np.dtype(np.float64)
    low = min(int(part.min(initial=0)) for part in parts)
    high = max(int(part.max(initial=0)) for part in parts)
    if high > MAX_INT64:
        return np.dtype(np.uint64 if low == 0 else np.float64)
    return np.dtype(np.int64) if low < 0 or high > MAX_UINT32 else np.min_scalar_type(high)


def _with_odd_values(values: np.ndarray, odd: np.ndarray, block: bytes) -> np.ndarray:
    """Fill in what the compiled loop could not read: long numbers, infinities, NaN."""
    if odd.size == 0:
        return values
    numbers = []
    for at in odd[:, 1].tolist():
        token = TOKEN.match(block, at)[0]  # type: ignore[index]
        try:
            numbers.append(_number(token))
        except ValueError:
            start = block.rfind(b"\n", 0, at) + 1
            raise BadLineError(
                block.count(b"\n", 0, at) + 1,
                block[start : block.index(b"\n", at)],
                f"the value {shown(token)} is not a number. Write it like 3, -1.5 or 2e-3, with a "
                "blank before a comment.",
            ) from None
    # Objects are needed because no type of NumPy's holds both -1 and 2^64 - 1.
    found = np.array(numbers, float if any(isinstance(x, float) for x in numbers) else object)
    values = values.astype(_smallest_type(values, found))
    values[odd[:, 0]] = found
    return values


def _number(token: bytes) -> int | float:
    """Read a number like Python, but without the underscores that it allows; "-0" is a float."""
    if INTEGER.fullmatch(token) and -(2**63) <= int(token) < 2**64:
        return int(token)
    if b"_" in token:
        raise ValueError
    return float(token)


def _complaint(columns: list[bytes], layout: Layout) -> str:
    """Say why a line was refused."""
    order = layout.order
    if len(columns) != order + 1:
        count = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        source = "the first entry has" if layout.shape is None else "the header asks for"
        return f"it has {count}, but {source} {order + 1}: indices and a value."
    for number, (column, limit) in enumerate(zip(columns, layout.limits, strict=False), 1):
        place = f"{shown(column)} in column {number}"
        digits = column.lstrip(b"0")
        if not column.isdigit():
            return f"{place} is not an index, a whole number that counts from 1."
        if not digits:
            return f"index {place}: indices count from 1. Add 1 to all of them."
        if len(digits) > len(str(MAX_INT64)) or int(digits) > limit:
            told = "int64 can hold" if layout.shape is None else "the header's dimension"
            return f"index {place} is larger than {told}, {limit}."
    return "not an entry, indices and a value."


def _check_count(n_entries: int, layout: Layout, path: PathLike) -> None:
    if layout.n_entries not in (None, n_entries):
        raise InvalidDataError(
            f"{os.fspath(path)} has {n_entries} entries, but its header, up to line "
            f"{layout.lines_before}, tells of {layout.n_entries}. Is it truncated? Correct the "
            "header, or remove it."
        )
