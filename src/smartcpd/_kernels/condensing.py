"""Arrays condensed to a few bytes at the speed of memory, to be hashed: every bit has a part.

This notices changes, not forgers. Cryptographic digests would take longer than a pass of a fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from smartcpd._kernels import kinds
from smartcpd._kernels.events import load_index

LANES = 8
"""Numbers that are mixed side by side, for a processor that multiplies several at a time."""
PIECE = 1 << 24
"""About how many bytes are condensed at once, and copied where an array is not contiguous."""
ODD = -7046029254386353131
"""An odd number of 64 bits without a pattern: multiplying by it loses nothing."""
LOW = 0xFFFFFFFF


def condensed(array: np.ndarray) -> Iterator[bytes]:
    """Yield some bytes for each piece of an array, in the order of its cells, wherever they lie."""
    array = np.atleast_1d(array)
    rows = max(1, array.shape[0] * PIECE // max(array.nbytes, 1))
    for start in range(0, array.shape[0], rows):
        piece = np.ascontiguousarray(array[start : start + rows]).reshape(-1).view(np.uint8)
        if piece.__array_interface__["data"][0] % 8:
            piece = piece.copy()
        whole = piece.size - piece.size % (8 * LANES)
        lanes = np.arange(1, LANES + 1)
        _compiled(_mix)(piece.__array_interface__["data"][0], whole // 8, lanes)
        yield lanes.tobytes() + piece[whole:].tobytes()


def _mix(address: kinds.Integer, n_words: kinds.Integer, lanes: kinds.Integers):
    for i in range(0, n_words, LANES):
        for k in range(LANES):
            mixed = (lanes[k] ^ load_index(address + 8 * (i + k), 8)) * ODD
            # High bits come down, or changes of two signs would cancel.
            lanes[k] = mixed ^ ((mixed >> 32) & LOW)


@cache
def _compiled(function: Any) -> Any:
    return kinds.compile_annotated(function)
