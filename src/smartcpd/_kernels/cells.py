"""Single cells: drawing them and reading what they hold.

Cells are named by their rows in the stacked factors, a row of an array for each mode. As in
`gather`, compiled code knows the data by a handle of addresses.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import numpy as np
from numba import types

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import exact_subroutine
from smartcpd._kernels.events import load_index
from smartcpd._kernels.gather import load_number

Key = Annotated[Any, types.uint64]
HALF, HALF_BITS = np.uint64((1 << 32) - 1), np.uint64(32)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
CHUNK = 256
"""Cells worked on at a time, one mode after the other."""


@cache
def dense_cells(data_dtype: str) -> Any:
    """(handle, offsets, rows, x): the values of cells of a dense array."""
    number = load_number(data_dtype)

    def dense(handle: kinds.Integers, offsets: kinds.Integers, rows: kinds.Rows, x: kinds.Vector):
        address = np.empty(CHUNK, np.int64)
        base = handle[0]
        for k in range(rows.shape[0]):
            base -= offsets[k] * handle[1 + k]
        for start in range(0, x.size, CHUNK):
            part = x[start : start + CHUNK]
            address[:] = base
            for k in range(rows.shape[0]):
                stride = handle[1 + k]
                column = rows[k, start : start + CHUNK]
                for b in range(column.size):
                    address[b] += np.int64(column[b]) * stride
            for b in range(part.size):
                part[b] = number(address[b])

    return kinds.compile_annotated(dense, data_dtype)


@cache
def sparse_cells(data_dtype: str) -> Any:
    """(handle, offsets, rows, x): the values of cells of a sparse tensor, found by bisection.

    The handle is that of the events, then their number, then the modes they are sorted by.
    """
    number = load_number(data_dtype)
    item_bytes = np.dtype(data_dtype).itemsize

    def sparse(handle: kinds.Integers, offsets: kinds.Integers, rows: kinds.Rows, x: kinds.Vector):
        order = rows.shape[0]
        for b in range(x.size):
            x[b] = 0.0
            low, high = 0, handle[1 + 2 * order]
            while low < high:
                middle = (low + high) // 2
                relation = 0
                for place in range(order):
                    k = handle[2 + 2 * order + place]
                    size = handle[2 + 2 * k]
                    here = load_index(handle[1 + 2 * k] + middle * size, size)
                    relation = np.int64(rows[k, b]) - offsets[k] - here
                    if relation != 0:
                        break
                if relation == 0:
                    x[b] = number(handle[0] + middle * item_bytes)
                    break
                if relation > 0:
                    low = middle + 1
                else:
                    high = middle

    return kinds.compile_annotated(sparse, data_dtype)


def _place(
    key: Key,
    words: kinds.Flags,
    n_samples: kinds.Integer,
    lead: kinds.Integer,
    offsets: kinds.Integers,
    rows: kinds.Rows,
):
    n_cells = rows.shape[1]
    word = np.empty(CHUNK, np.uint64)
    counter = key
    for start in range(0, n_cells, CHUNK):
        n = min(CHUNK, n_cells - start)
        for k in range(rows.shape[0]):
            if words[k]:
                counter = _random_words(counter, word[:n])
            first, size = offsets[k], offsets[k + 1] - offsets[k]
            _take_digits(word[:n], np.uint32(first), np.uint32(size), rows[k, start : start + n])
    if lead >= 0:
        first, size = offsets[lead], offsets[lead + 1] - offsets[lead]
        counts = np.empty(size, np.int64)
        for start in range(0, n_cells, n_samples):
            _sort(rows[lead, start : start + n_samples], np.uint32(first), counts)


@exact_subroutine
def _random_words(counter, words):
    """SplitMix64 (Steele, Lea and Flood, 2014): random numbers from a counter, and its next value.

    NumPy's generators make one number after the other; from a counter, several come at once.
    """
    for b in range(words.size):
        z = counter + np.uint64(b + 1) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * MIX_1
        z = (z ^ (z >> np.uint64(27))) * MIX_2
        words[b] = z ^ (z >> np.uint64(31))
    return counter + np.uint64(words.size) * GOLDEN


@exact_subroutine
def _take_digits(words, first, size, column):
    """``column = first + digit``; with 2**64 digit + rest = words * size, words become the rest."""
    for b in range(column.size):
        low = (words[b] & HALF) * np.uint64(size)
        high = (words[b] >> HALF_BITS) * np.uint64(size) + (low >> HALF_BITS)
        words[b] = (high << HALF_BITS) | (low & HALF)
        column[b] = first + np.uint32(high >> HALF_BITS)


@exact_subroutine
def _sort(column, first, counts):
    """Sort by counting; ``counts`` is scratch, one for each value from ``first`` on."""
    counts[:] = 0
    for b in range(column.size):
        counts[np.uint64(column[b] - first)] += 1
    place = np.uint64(0)
    for i in range(counts.size):
        for _ in range(counts[i]):
            column[place] = first + i
            place += np.uint64(1)


@cache
def compiled_place() -> Any:
    """(key, words, n_samples, lead, offsets, rows): random cells, the same ones for the same key.

    Where ``words[k]`` a new random number is drawn; the index in mode k is its first digit, those
    in the modes that follow are the next ones. In the mode ``lead`` the rows of each ``n_samples``
    cells are then sorted; lead = -1 is no mode.
    """
    return kinds.compile_annotated(_place)
