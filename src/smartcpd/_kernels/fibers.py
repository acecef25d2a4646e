"""Reading whole fibers of a sparse tensor, most of them empty."""

from __future__ import annotations

from functools import cache

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.compiling import Block, exact_subroutine
from smartcpd._kernels.events import load_index
from smartcpd._kernels.gather import load_number

_long = load_number("int64")


@exact_subroutine
def find_fiber(handle, order, fiber, mode, index):
    """The number of a fiber among those that are not empty, or -1; by bisection.

    ``order`` is the tensor's; ``index`` where the mode's fiber index starts in the handle.
    """
    low, high = 0, handle[index + 2]
    while low < high:
        middle = (low + high) // 2
        first = _long(handle[index + 1] + 8 * middle)
        entry = _long(handle[index] + 8 * first)
        relation = 0
        for k in range(order):
            if k != mode:
                size = handle[2 + 2 * k]
                here = load_index(handle[1 + 2 * k] + entry * size, size)
                if here != fiber[k]:
                    relation = 1 if here < fiber[k] else -1
                    break
        if relation == 0:
            return middle
        if relation > 0:
            low = middle + 1
        else:
            high = middle
    return -1


@cache
def sparse_gather(data_dtype: str, dtype: str, fill: int = 0) -> Block:
    """``out[i, f]`` = row ``first + i`` of fiber f along ``mode``, ``fill`` where there is none.

    Data that is not stored is 0, a weight that is not stored 1.
    """
    number = load_number(data_dtype)
    item_bytes = np.dtype(data_dtype).itemsize

    def gather(handle, fibers, mode, first, out):
        order = fibers.shape[1]
        index = 1 + 2 * order + 3 * mode
        size = handle[2 + 2 * mode]
        out[:] = fill
        for f in range(fibers.shape[0]):
            found = find_fiber(handle, order, fibers[f], mode, index)
            if found < 0:
                continue
            start = _long(handle[index + 1] + 8 * found)
            stop = _long(handle[index + 1] + 8 * (found + 1))
            for place in range(start, stop):
                entry = _long(handle[index] + 8 * place)
                row = load_index(handle[1 + 2 * mode] + entry * size, size) - first
                if 0 <= row < out.shape[0]:
                    out[row, f] = number(handle[0] + entry * item_bytes)

    return kinds.compile_block(kinds.Gather, gather, f"sparse_gather.{data_dtype}.{fill}", dtype)


@cache
def zero_gather(dtype: str) -> Block:
    """Return the block that fills ``out`` with 0, for fibers that are read as if all were empty."""

    def gather(handle, fibers, mode, first, out):
        out[:] = 0

    return kinds.compile_block(kinds.Gather, gather, "zero_gather", dtype)
