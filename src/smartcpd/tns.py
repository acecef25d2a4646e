"""Sparse tensors as text: the ``.tns`` files of FROSTT, plain or compressed with gzip.

A line is an entry, ``i1 i2 ... iN value``, its indices counting from 1. Columns are parted by
blanks or commas; ``#`` or ``%``, first on a line or after a blank, starts a comment. The entries
may follow a header:

* none: the shape is the largest index of each mode;
* the comment ``# shape: d1 ... dN``, as `write_tns` writes it;
* a line ``N`` and a line ``d1 ... dN`` (ParTI, SPLATT's relatives), with the number of entries at
  the end of the second line, on a third, or nowhere;
* the same after a line ``sptensor`` (Tensor Toolbox, pyttb);
* ``N`` and the number of entries on a line, then ``d1 ... dN`` (MLIR's "extended FROSTT").

A file is read in blocks of whole lines, parsed by several threads and joined in order, so that
memory holds the result and a few blocks, and the number of threads changes nothing.
"""

from __future__ import annotations

import gzip
import os
import re
import uuid
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from smartcpd import threads
from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.kernels import text

PathLike = str | os.PathLike[str]
Shape = tuple[int, ...]

BLOCK_BYTES = 1 << 18
ROWS_AT_ONCE = 1 << 16
MAX_INT64 = 2**63 - 1
MAX_UINT32 = 2**32 - 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"
GZIP_LEVEL = 4  # Python's default, 9, takes twelve times as long to save a tenth.

SHAPE_COMMENT = re.compile(rb"\s*#\s*shape:((?:\s+\d+)+)\s*$")
COMMENT = re.compile(rb"(?:^|(?<=[\s,]))[#%].*", re.DOTALL)
TOKEN = re.compile(rb"[^\s,]+")
INTEGER = re.compile(rb"[+-]?0*[1-9]\d{0,19}")


class _Line(NamedTuple):
    """A line with something on it, and where it ends in the file."""

    number: int
    end: int
    content: bytes
    columns: list[bytes]


class _BadLineError(Exception):
    """A line that cannot be read; ``number`` counts from 1 in the block it is in."""

    def __init__(self, number: int, content: bytes, reason: str) -> None:
        super().__init__(number, content, reason)
        self.number, self.content, self.reason = number, content, reason

    def in_file(self, path: PathLike, lines_before: int = 0) -> InvalidDataError:
        where = f"{os.fspath(path)}, line {lines_before + self.number}"
        return InvalidDataError(f"{where}: {_shown(self.content)}: {self.reason}")


@dataclass(frozen=True)
class _Layout:
    """What the first lines say about the rest, which starts after ``start`` bytes."""

    order: int
    shape: Shape | None
    n_entries: int | None
    start: int
    lines_before: int

    @property
    def limits(self) -> Shape:
        return (MAX_INT64,) * self.order if self.shape is None else self.shape


class _Piece(NamedTuple):
    """The entries of a block, each column in the smallest type that holds it."""

    indices: list[np.ndarray]
    values: np.ndarray
    n_lines: int


def read_tns(
    path: PathLike, n_threads: int | None = None
) -> tuple[list[np.ndarray], np.ndarray, Shape]:
    """The entries of a ``.tns`` or ``.tns.gz`` file, in the order of the file.

    Returns
    -------
    indices : one array a mode, counting from 0, in the smallest of uint8, uint16, uint32 and int64.
    values : integers if all are written as integers, in the smallest of these types (uint64 if one
        needs it and none is negative); otherwise float64, each as ``float`` reads it.
    shape : from the header, or else the largest index of each mode.
    """
    with _open_to_read(path) as file:
        layout = _read_layout(file, path)
        file.seek(layout.start)
        pieces = list(_read_pieces(file, layout, path, threads.resolve(n_threads)))
    columns = [[piece.indices[mode] for piece in pieces] for mode in range(layout.order)]
    columns.append([piece.values for piece in pieces])
    del pieces
    # Each column's pieces are let go as soon as they are joined.
    *indices, values = [_joined(columns.pop(0)) for _ in range(layout.order + 1)]
    _check_count(values.size, layout, path)
    shape = layout.shape or tuple(int(index.max()) + 1 for index in indices)
    return indices, values, shape


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


def _read_layout(file: BufferedIOBase, path: PathLike) -> _Layout:
    lines, shape = _first_lines(file)
    start = len(BYTE_ORDER_MARK) if _has_mark(file) else 0
    if shape is not None:
        return _Layout(len(shape), shape, None, start, 0)
    if not lines:
        raise InvalidDataError(
            f"{os.fspath(path)} is empty: it has no entry, and no header that gives a shape."
        )
    try:
        n_lines, shape, n_entries = _parse_header(lines)
    except _BadLineError as bad:
        raise bad.in_file(path) from None
    if shape is None:
        return _Layout(len(lines[0].columns) - 1, None, None, start, 0)
    last = lines[n_lines - 1]
    return _Layout(len(shape), shape, n_entries, last.end, last.number)


def _has_mark(file: BufferedIOBase) -> bool:
    file.seek(0)
    return file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK


def _first_lines(file: BufferedIOBase) -> tuple[list[_Line], Shape | None]:
    """As many lines as the longest header has, and the shape if a comment before them tells it."""
    lines: list[_Line] = []
    end = 0
    for number, content in enumerate(file, 1):
        end += len(content)
        content = content.removeprefix(BYTE_ORDER_MARK) if number == 1 else content
        told = SHAPE_COMMENT.match(content)
        if told and not lines and (shape := _whole_numbers(told[1].split())):
            return lines, shape
        columns = _columns(content)
        if columns:
            lines.append(_Line(number, end, content, columns))
        if len(lines) == 4:
            break
    return lines, None


def _shown(content: bytes) -> str:
    """In quotes, and cut if it is long."""
    characters = content.decode(errors="replace").strip()
    return repr(characters if len(characters) <= 80 else characters[:80] + "...")


def _columns(line: bytes) -> list[bytes]:
    return TOKEN.findall(COMMENT.sub(b"", line))


def _parse_header(lines: list[_Line]) -> tuple[int, Shape | None, int | None]:
    """How many lines it has, the shape, and the number of entries where it is told.

    No entry has a single column, so a first line with one starts a header. One with more does so
    only if the lines after it have the numbers of columns that this implies.
    """
    is_toolbox = lines[0].columns[0].lower() == b"sptensor"
    n_lines = 1 if is_toolbox else 0
    lines = lines[n_lines:] or lines
    match [_whole_numbers(line.columns) for line in lines]:
        case [(order,), sizes, (n_entries,), *_] if 0 < order == len(sizes):
            return n_lines + 3, sizes, n_entries
        case [(order,), sizes, *_] if 0 < order == len(sizes):
            return n_lines + 2, sizes, None
        case [(order,), (*some, n_entries), *_] if 0 < order == len(some):
            return n_lines + 2, tuple(some), n_entries
        case [(order, n_entries), sizes, _, *_] if (
            0 < order == len(sizes) == len(lines[2].columns) - 1
        ):
            return n_lines + 2, sizes, n_entries
    first = lines[0]
    if is_toolbox or len(first.columns) == 1:
        raise _BadLineError(
            first.number,
            first.content,
            "neither an entry, which has indices and a value, nor a header that is understood: the "
            "order N alone (perhaps after 'sptensor'), then a line with the N dimensions.",
        )
    return 0, None, None


def _whole_numbers(columns: list[bytes]) -> Shape:
    """The columns as numbers, or none of them if one is not a number that counts something."""
    if not all(column.isdigit() and len(column) < 20 for column in columns):
        return ()
    numbers = tuple(int(column) for column in columns)
    return numbers if max(numbers) <= MAX_INT64 else ()


def _read_pieces(
    file: BufferedIOBase, layout: _Layout, path: PathLike, n_threads: int
) -> Iterator[_Piece]:
    text.compiled_parse_entries()  # Once, before there are threads that would each do it.
    n_lines = layout.lines_before
    waiting: deque[Future[_Piece]] = deque()

    def next_piece() -> _Piece:
        nonlocal n_lines
        try:
            piece = waiting.popleft().result()
        except _BadLineError as bad:
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
    """The rest of a file, whole lines at a time; at least one block, and each ends a line."""
    while True:
        block = file.read(BLOCK_BYTES)
        is_last = len(block) < BLOCK_BYTES
        block += file.readline()
        yield block if block.endswith(b"\n") else block + b"\n"
        if is_last:
            return


def _parse(block: bytes, layout: _Layout) -> _Piece:
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
        raise _BadLineError(n_lines + 1, content, _complaint(_columns(content), layout))
    return _Piece([_joined([index[:n_entries]]) for index in indices], _joined([values]), n_lines)


def _joined(pieces: list[np.ndarray]) -> np.ndarray:
    """A copy, end to end, in the smallest type that holds it all."""
    return np.concatenate(pieces, dtype=_smallest_type(*pieces), casting="unsafe")


def _smallest_type(*parts: np.ndarray) -> np.dtype:
    """The smallest unsigned type up to 32 bits; else int64, uint64 or, failing these, float64."""
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
            raise _BadLineError(
                block.count(b"\n", 0, at) + 1,
                block[start : block.index(b"\n", at)],
                f"the value {_shown(token)} is not a number. Write it like 3, -1.5 or 2e-3, with a "
                "blank before a comment.",
            ) from None
    # Objects, because no type of NumPy's holds both -1 and 2^64 - 1.
    found = np.array(numbers, float if any(isinstance(x, float) for x in numbers) else object)
    values = values.astype(_smallest_type(values, found))
    values[odd[:, 0]] = found
    return values


def _number(token: bytes) -> int | float:
    """As Python reads it, but for the underscores that it allows; "-0" is a float."""
    if INTEGER.fullmatch(token) and -(2**63) <= int(token) < 2**64:
        return int(token)
    if b"_" in token:
        raise ValueError
    return float(token)


def _complaint(columns: list[bytes], layout: _Layout) -> str:
    """Why a line was refused."""
    order = layout.order
    if len(columns) != order + 1:
        count = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        source = "the first entry has" if layout.shape is None else "the header asks for"
        return f"it has {count}, but {source} {order + 1}: indices and a value."
    for number, (column, limit) in enumerate(zip(columns, layout.limits, strict=False), 1):
        shown = f"{_shown(column)} in column {number}"
        digits = column.lstrip(b"0")
        if not column.isdigit():
            return f"{shown} is not an index, a whole number that counts from 1."
        if not digits:
            return f"index {shown}: indices count from 1. Add 1 to all of them."
        if len(digits) > len(str(MAX_INT64)) or int(digits) > limit:
            told = "int64 can hold" if layout.shape is None else "the header's dimension"
            return f"index {shown} is larger than {told}, {limit}."
    return "not an entry, indices and a value."


def _check_count(n_entries: int, layout: _Layout, path: PathLike) -> None:
    if layout.n_entries not in (None, n_entries):
        raise InvalidDataError(
            f"{os.fspath(path)} has {n_entries} entries, but its header, up to line "
            f"{layout.lines_before}, tells of {layout.n_entries}. Is it truncated? Correct the "
            "header, or remove it."
        )


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
    if not path.parent.is_dir():
        raise InvalidParameterError(
            f"Cannot write {path}: {path.parent} is not a directory. Create it first."
        )
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            if path.name.endswith(".gz"):
                # Without a name and a time, equal entries give equal files.
                with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as compressed:
                    yield compressed
            else:
                yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _formatted(indices: list[np.ndarray], values: np.ndarray) -> memoryview:
    """A line for each entry, in bytes."""
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
    """The different values as Python writes them, end to end; where each starts; which is whose."""
    # By their bits, which tell -0.0 from 0.0 and are equal for equal NaN.
    bits, which = np.unique(values.view(np.int64), return_inverse=True)
    words = [repr(value) for value in bits.view(values.dtype).tolist()]
    starts = np.cumsum([0, *map(len, words)], dtype=np.int64)
    return "".join(words).encode(), starts, which.astype(np.int64, copy=False)
