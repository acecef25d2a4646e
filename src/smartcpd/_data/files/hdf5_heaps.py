"""The heaps of HDF5 files, in which text and references of any length lie.

The library walks through a heap from object to object and believes what each says of its length:
one of length 0 keeps it at the same place for ever, where no signal reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from smartcpd._data.files.format import damaged

HEAP = b"GCOL\x01\0\0\0"
"""The first bytes of a heap."""
LENGTH_SIZES = {0: 14, 1: 14, 2: 10, 3: 10}
"""Where the head of a file says how many bytes a length has, by the version of the head."""
BLOCK = 1 << 24


def check_heaps(path: Path) -> None:
    """Refuse a file with a heap through which the library would not find its way."""
    with open(path, "rb") as file:
        head = file.read(16)
        place = LENGTH_SIZES.get(head[8]) if len(head) == 16 else None
        if place is None or head[place] not in (2, 4, 8):
            return  # which the library refuses
        for start in _starts(file):
            if not _can_be_walked(file, start, head[place]):
                error = ValueError(f"the heap at byte {start} has an object of a wrong length")
                raise damaged(path, "HDF5", error)


def _starts(file: BinaryIO) -> Iterator[int]:
    """Yield where heaps begin; some may be data that only looks like one."""
    at = 0
    while True:
        file.seek(at)
        block = file.read(BLOCK + len(HEAP))
        found = block.find(HEAP)
        while found >= 0:
            yield at + found
            found = block.find(HEAP, found + len(HEAP))
        if len(block) < BLOCK + len(HEAP):
            return
        at += BLOCK


def _can_be_walked(file: BinaryIO, start: int, length_size: int) -> bool:
    """Whether every step from an object to the next leads on, and stays inside of the heap."""
    head = _aligned(len(HEAP) + length_size)
    file.seek(start)
    size = int.from_bytes(file.read(head)[len(HEAP) : len(HEAP) + length_size], "little")
    file.seek(start)
    heap = file.read(min(size, 1 << 30))
    if len(heap) < size:
        return True  # the library sees that the file is too short
    at = head
    while at + head <= size:
        number = int.from_bytes(heap[at : at + 2], "little")
        length = int.from_bytes(heap[at + 8 : at + 8 + length_size], "little")
        step = head + _aligned(length) if number else length
        if step == 0 or at + step > size:
            return False
        at += step
    return True


def _aligned(size: int) -> int:
    return -(-size // 8) * 8
