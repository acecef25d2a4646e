"""MATLAB's files of version 5 to 7: named arrays, as tags that are followed by their bytes.

They are read here, not by SciPy, whose compiled reader follows what damaged files say into memory
of others. Every size is held against the bytes that there are.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._common.memory import check_claim

HEADER = 128
PEEKED = 4096
"""Bytes of a compressed variable that are unpacked to see its name and shape."""
MATRIX, COMPRESSED = 14, 15
STORED = dict(
    enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "f4", "", "f8", "", "", "i8", "u8"), 1)
)
"""The types of numbers in a file; 8, 10 and 11 are not used."""
STRUCT, OBJECT, SPARSE, OPAQUE = 2, 3, 5, 17
NUMBERS = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))
"""The types of arrays of numbers."""
LOGICAL, COMPLEX = 0x0200, 0x0800
LONGEST_NAME = 64


class DamagedError(Exception):
    """Bytes that are no file of this kind; says why."""


@dataclass
class _Cursor:
    """A place in some bytes, and the order of the bytes of a number."""

    data: memoryview
    order: str
    at: int = 0

    def word(self, kind: str = "u4") -> int:
        dtype = np.dtype(self.order + kind)
        return int(np.frombuffer(self.take(dtype.itemsize), dtype)[0])

    def take(self, count: int) -> memoryview:
        if not 0 <= count <= len(self.data) - self.at:
            raise DamagedError(f"{count} bytes should follow, and {len(self.data) - self.at} do")
        self.at += count
        return self.data[self.at - count : self.at]

    def element(self) -> tuple[int, memoryview]:
        """Return the type and the bytes of the next element; small ones are in their own tag."""
        kind = self.word()
        if kind >> 16:
            return kind & 0xFFFF, self.take(4)[: kind >> 16]
        content = self.take(self.word())
        self.at = min(len(self.data), self.at + -len(content) % 8)
        return kind, content

    def numbers(self, dtype: str | None = None) -> np.ndarray:
        """Return the next element as numbers, in a type that may be wider than that of the file."""
        kind, content = self.element()
        stored = STORED.get(kind, "")
        if not stored or len(content) % int(stored[1]):
            raise DamagedError(f"{len(content)} bytes of type {kind} are no numbers")
        found = np.frombuffer(content, self.order + stored)
        return found.astype(stored if dtype is None else dtype)


@dataclass(frozen=True)
class Variable:
    """A named array, of which only the name, the type and the shape have been read."""

    name: str
    kind: int
    flags: int
    shape: tuple[int, ...]
    packed: memoryview
    compressed: bool
    order: str

    @property
    def is_numeric(self) -> bool:
        return self.kind in NUMBERS or self.kind == SPARSE

    @property
    def is_record(self) -> bool:
        return self.kind in (STRUCT, OBJECT)

    def read(self) -> Any:
        """Return an array, a SciPy sparse array or, for a structure, its fields by name."""
        data = _unpacked(self.packed, None) if self.compressed else self.packed
        cursor = _Cursor(data, self.order)
        _head(cursor)
        return _body(cursor, self.kind, self.flags, self.shape)


def variables(path: Path) -> Iterator[Variable]:
    """Yield the variables of a file."""
    whole = memoryview(path.read_bytes())
    order = {b"IM": "<", b"MI": ">"}.get(bytes(whole[HEADER - 2 : HEADER]))
    if order is None:
        raise DamagedError("it does not begin as one of version 5 or later")
    cursor = _Cursor(whole, order, HEADER)
    while cursor.at < len(whole):
        kind, size = cursor.word(), cursor.word()
        content = cursor.take(size)
        if kind == COMPRESSED:
            head = _unpacked(content, PEEKED)
        elif kind == MATRIX:
            head = content
            cursor.at = min(len(whole), cursor.at + -size % 8)
        else:
            raise DamagedError(f"an element of type {kind} is no array")
        if len(head):
            found = _head(_Cursor(head, order))
            yield Variable(*found, content, kind == COMPRESSED, order)


def _unpacked(content: memoryview, most: int | None) -> memoryview:
    """Return a compressed variable without its tag, or so many bytes of it."""
    packed = zlib.decompressobj()
    tag = np.frombuffer(packed.decompress(content, 8), "<u4")
    # The tag is in the order of the file; whichever gives the type of an array is that.
    tag = tag if tag.size and tag[0] == MATRIX else tag.byteswap()
    if tag.size != 2 or tag[0] != MATRIX:
        raise DamagedError("what is compressed in it is no array")
    size = int(tag[1])
    check_claim("A compressed array", size)
    found = packed.decompress(packed.unconsumed_tail, size if most is None else min(size, most))
    if most is None and len(found) < size:
        raise DamagedError(f"{size} bytes should be compressed in it, and {len(found)} are")
    return memoryview(found)


def _head(cursor: _Cursor) -> tuple[str, int, int, tuple[int, ...]]:
    flags = cursor.numbers("u4")
    if flags.size != 2:
        raise DamagedError("an array has no flags")
    kind = int(flags[0]) & 0xFF
    if kind == OPAQUE:  # whose content is elsewhere, in a form that only MATLAB knows
        return bytes(cursor.element()[1]).decode(errors="replace"), kind, 0, ()
    shape = tuple(int(size) for size in cursor.numbers("i8"))
    name = bytes(cursor.element()[1]).decode(errors="replace")
    if len(shape) < 2 or min(shape) < 0:
        raise DamagedError(f"{name} has shape {shape}")
    return name, kind, int(flags[0]), shape


def _body(cursor: _Cursor, kind: int, flags: int, shape: tuple[int, ...]) -> Any:
    if kind in NUMBERS:
        numbers = _values(cursor, NUMBERS[kind], flags)
        if numbers.size != math.prod(shape):
            raise DamagedError(f"{numbers.size} numbers are there for shape {shape}")
        return numbers.reshape(shape, order="F")
    if kind == SPARSE:
        from scipy import sparse

        rows, starts = cursor.numbers("i8"), cursor.numbers("i8")
        if starts.size != shape[1] + 1:
            raise DamagedError(f"{starts.size} pointers are there for shape {shape}")
        count = int(starts[-1])
        values = _values(cursor, "f8", flags)
        if not 0 <= count <= min(rows.size, values.size):
            raise DamagedError(f"{count} entries are told of, and {rows.size} are there")
        return sparse.csc_array((values[:count], rows[:count], starts), shape=shape)
    if kind in (STRUCT, OBJECT):
        return _record(cursor, kind, shape)
    raise DamagedError(f"an array of type {kind} holds no numbers")


def _values(cursor: _Cursor, dtype: str, flags: int) -> np.ndarray:
    found = cursor.numbers("?" if flags & LOGICAL else dtype)
    return found + 1j * cursor.numbers(dtype) if flags & COMPLEX else found


def _record(cursor: _Cursor, kind: int, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the fields of a structure that hold numbers."""
    if math.prod(shape) != 1:
        return {}
    if kind == OBJECT:
        cursor.element()  # the name of its class
    length = int(cursor.numbers("i8")[0])
    if not 0 < length <= LONGEST_NAME:
        raise DamagedError(f"names of fields have {length} letters")
    names = bytes(cursor.element()[1])
    found: dict[str, Any] = {}
    for start in range(0, len(names), length):
        name = names[start : start + length].split(b"\0")[0].decode(errors="replace")
        element, content = cursor.element()
        if element != MATRIX:
            raise DamagedError(f"field {name} is no array")
        inner = _Cursor(content, cursor.order)
        _, inside, flags, inner_shape = _head(inner) if len(content) else ("", 0, 0, ())
        found[name] = _body(inner, inside, flags, inner_shape) if inside in NUMBERS else None
    return found
