"""The header of a ``.tns`` file, and what it says about the rest."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from io import BufferedIOBase
from typing import NamedTuple

from smartcpd.errors import InvalidDataError

PathLike = str | os.PathLike[str]
Shape = tuple[int, ...]

MAX_INT64 = 2**63 - 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

SHAPE_COMMENT = re.compile(rb"\s*#\s*shape:((?:\s+\d+)+)\s*$")
COMMENT = re.compile(rb"(?:^|(?<=[\s,]))[#%].*", re.DOTALL)
TOKEN = re.compile(rb"[^\s,]+")


class Line(NamedTuple):
    """A line that is not empty, and where it ends in the file."""

    number: int
    end: int
    content: bytes
    columns: list[bytes]


class BadLineError(Exception):
    """A line that cannot be read; ``number`` counts from 1 in the block it is in."""

    def __init__(self, number: int, content: bytes, reason: str) -> None:
        super().__init__(number, content, reason)
        self.number, self.content, self.reason = number, content, reason

    def in_file(self, path: PathLike, lines_before: int = 0) -> InvalidDataError:
        where = f"{os.fspath(path)}, line {lines_before + self.number}"
        return InvalidDataError(f"{where}: {shown(self.content)}: {self.reason}")


@dataclass(frozen=True)
class Layout:
    """The shape and the number of entries that the first lines tell; the rest starts at
    ``start``.
    """

    order: int
    shape: Shape | None
    n_entries: int | None
    start: int
    lines_before: int

    @property
    def limits(self) -> Shape:
        return (MAX_INT64,) * self.order if self.shape is None else self.shape


def read_layout(file: BufferedIOBase, path: PathLike) -> Layout:
    lines, shape = _first_lines(file)
    start = len(BYTE_ORDER_MARK) if _has_mark(file) else 0
    if shape is not None:
        return Layout(len(shape), shape, None, start, 0)
    if not lines:
        raise InvalidDataError(
            f"{os.fspath(path)} is empty: it has no entry, and no header that gives a shape."
        )
    try:
        n_lines, shape, n_entries = _parse_header(lines)
    except BadLineError as bad:
        raise bad.in_file(path) from None
    if shape is None:
        return Layout(len(lines[0].columns) - 1, None, None, start, 0)
    last = lines[n_lines - 1]
    return Layout(len(shape), shape, n_entries, last.end, last.number)


def _has_mark(file: BufferedIOBase) -> bool:
    file.seek(0)
    return file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK


def _first_lines(file: BufferedIOBase) -> tuple[list[Line], Shape | None]:
    """Return as many lines as the longest header has, and the shape if a comment before them tells
    it.
    """
    lines: list[Line] = []
    end = 0
    for number, content in enumerate(file, 1):
        end += len(content)
        content = content.removeprefix(BYTE_ORDER_MARK) if number == 1 else content
        told = SHAPE_COMMENT.match(content)
        if told and not lines and (shape := _whole_numbers(told[1].split())):
            return lines, shape
        columns = columns_of(content)
        if columns:
            lines.append(Line(number, end, content, columns))
        if len(lines) == 4:
            break
    return lines, None


def shown(content: bytes) -> str:
    """Quote a text, and cut it if it is long."""
    characters = content.decode(errors="replace").strip()
    return repr(characters if len(characters) <= 80 else characters[:80] + "...")


def columns_of(line: bytes) -> list[bytes]:
    return TOKEN.findall(COMMENT.sub(b"", line))


def _parse_header(lines: list[Line]) -> tuple[int, Shape | None, int | None]:
    """Return how many lines the header has, the shape, and the number of entries where it is told.

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
        raise BadLineError(
            first.number,
            first.content,
            "neither an entry, which has indices and a value, nor a header that is understood: the "
            "order N alone (perhaps after 'sptensor'), then a line with the N dimensions.",
        )
    return 0, None, None


def _whole_numbers(columns: list[bytes]) -> Shape:
    """Return the columns as numbers, or nothing if one of them is not a whole number above 0."""
    if not all(column.isdigit() and len(column) < 20 for column in columns):
        return ()
    numbers = tuple(int(column) for column in columns)
    return numbers if max(numbers) <= MAX_INT64 else ()
