"""Sorting multi-indices by counting, one mode at a time: linear in their number.

Columns of indices come as [address, bytes of an index] pairs, so that any mix of integer types is
served by the same compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.events import load_index

UNSORTED, REPEATED, STRICT = 0, 1, 2


def columns_handle(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Address and item size of each column, one after the other."""
    pairs = [(c.__array_interface__["data"][0], c.itemsize) for c in columns]
    return np.array(pairs, dtype=np.int64).reshape(-1)


def sorting_order(columns: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """The permutation that sorts rows lexicographically, the first column first.

    ``sizes`` bound the entries of each column.
    """
    n = columns[0].size
    order = np.arange(n)
    out = np.empty_like(order)
    for keys, size in zip(reversed(columns), reversed(sizes), strict=True):
        if size > 4 * n + 65_536:
            # Far more keys than rows: counting would cost more than comparing.
            order = order[np.argsort(keys[order], kind="stable")]
            continue
        starts = np.zeros(size + 1, dtype=np.int64)
        _compiled(_place)(columns_handle([keys]), order, starts, out)
        order, out = out, order
    return order


def sortedness(columns: Sequence[np.ndarray]) -> int:
    """UNSORTED, sorted with some rows REPEATED, or STRICT where no two rows are the same."""
    return int(_compiled(_sortedness)(columns_handle(columns), columns[0].size))


def distinct_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return where each distinct one of some sorted rows starts."""
    n = columns[0].size
    new = np.zeros(n, dtype=bool)
    new[:1] = True
    for keys in columns:
        new[1:] |= keys[1:] != keys[:-1]
    return np.flatnonzero(new)


def _place(
    column: kinds.Integers, order: kinds.Integers, starts: kinds.Integers, out: kinds.Integers
):
    address, size = column[0], column[1]
    for i in range(order.size):
        starts[load_index(address + order[i] * size, size) + 1] += 1
    for key in range(1, starts.size):
        starts[key] += starts[key - 1]
    for i in range(order.size):
        key = load_index(address + order[i] * size, size)
        out[starts[key]] = order[i]
        starts[key] += 1


def _sortedness(columns: kinds.Integers, n: kinds.Integer) -> kinds.Integer:
    result = STRICT
    for i in range(1, n):
        relation = 0
        for k in range(0, columns.size, 2):
            size = columns[k + 1]
            before = load_index(columns[k] + (i - 1) * size, size)
            now = load_index(columns[k] + i * size, size)
            if before != now:
                relation = 1 if before < now else -1
                break
        if relation < 0:
            return UNSORTED
        if relation == 0:
            result = REPEATED
    return result


@cache
def _compiled(function: Any) -> Any:
    return kinds.compile_annotated(function)
