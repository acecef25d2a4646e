"""Single cells: drawing them and reading what they hold.

Cells are named by their rows in the stacked factors, a row of an array for each mode. As in
`gather`, compiled code knows the data by a handle of addresses.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types

from smartcpd.kernels.compiling import compile_kernel
from smartcpd.kernels.events import ROWS, load_index
from smartcpd.kernels.gather import load_number

CHUNK = 256
"""Cells worked on at a time, one mode after the other."""
_INTEGERS = types.int64[::1]
_READ = types.void(_INTEGERS, _INTEGERS, ROWS, types.float64[::1])


@cache
def dense_cells(data_dtype: str) -> Any:
    """(handle, offsets, rows, x): the values of cells of a dense array."""
    number = load_number(data_dtype)

    def read(handle, offsets, rows, x):
        address = np.empty(CHUNK, np.int64)
        for start in range(0, x.size, CHUNK):
            part = x[start : start + CHUNK]
            address[:] = handle[0]
            for k in range(rows.shape[0]):
                first, stride = offsets[k], handle[1 + k]
                column = rows[k, start : start + CHUNK]
                for b in range(column.size):
                    address[b] += (np.int64(column[b]) - first) * stride
            for b in range(part.size):
                part[b] = number(address[b])

    return compile_kernel(read, _READ, f"dense_cells.{data_dtype}")


@cache
def sparse_cells(data_dtype: str) -> Any:
    """(handle, offsets, rows, x): the values of cells of a sparse tensor, found by bisection.

    The handle is that of the events, then their number, then the modes they are sorted by.
    """
    number = load_number(data_dtype)
    item_bytes = np.dtype(data_dtype).itemsize

    def read(handle, offsets, rows, x):
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

    return compile_kernel(read, _READ, f"sparse_cells.{data_dtype}")


def _place(u, words, counts, lead, offsets, rows):
    n_modes, n_cells = rows.shape
    for start in range(0, n_cells, u.shape[1]):
        stop = min(start + u.shape[1], n_cells)
        for k in range(n_modes):
            if k != lead:
                first, size = offsets[k], offsets[k + 1] - offsets[k]
                column = rows[k, start:stop]
                rest = u[words[k]]
                for b in range(column.size):
                    scaled = rest[b] * size
                    index = min(np.int64(scaled), size - 1)
                    rest[b] = scaled - index
                    column[b] = first + index
    if lead >= 0:
        first, size = offsets[lead], offsets[lead + 1] - offsets[lead]
        b = 0
        for run in range(counts.size):
            rows[lead, b : b + counts[run]] = first + run % size
            b += counts[run]


@cache
def compiled_place() -> Any:
    """(u, words, counts, lead, offsets, rows): cells from uniform numbers in [0, 1).

    The indices of the modes k with the same ``words[k]`` are successive digits of one number, in
    the row ``words[k]`` of u, which is used up; if u is shorter than the cells are many, the next
    ones take the digits that follow. ``counts`` says how many cells in turn have each
    index of the mode ``lead``, over and over; lead = -1 is no mode.
    """
    matrix = types.Array(types.float64, 2, "C")
    signature = types.void(matrix, _INTEGERS, _INTEGERS, types.intp, _INTEGERS, ROWS)
    return compile_kernel(_place, signature, "place")
