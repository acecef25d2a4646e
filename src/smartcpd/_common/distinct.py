"""The different values of an array, and where each of them stands."""

from __future__ import annotations

import numpy as np

COUNTED = 1 << 16
"""Whole numbers from 0 to below this are found by counting, which needs no sorting."""


def distinct(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different values of an array, in order, and which of them each entry is.

    It is what ``np.unique(x, return_inverse=True)`` returns, many times as fast for small whole
    numbers such as counts.
    """
    if x.size and x.min() >= 0 and x.max() < COUNTED:
        whole = x.astype(np.uint16)
        if np.array_equal(whole, x):
            values = np.flatnonzero(np.bincount(whole.ravel()))
            place = np.zeros(COUNTED, dtype=np.intp)
            place[values] = np.arange(values.size)
            return values.astype(x.dtype), place[whole]
    values, which = np.unique(x, return_inverse=True)
    return values, which.reshape(x.shape)
