"""All factors in one array, mode after mode: the form compiled loops work on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np


def offsets(shape: Sequence[int]) -> np.ndarray:
    """The row at which each mode starts in the stacked array, and the one after the last."""
    return np.array([0, *accumulate(shape)], np.int64)


def stack(factors: Sequence[np.ndarray], dtype: str = "float64") -> np.ndarray:
    """Copy the factors into one (sum of sizes) x rank array."""
    return np.ascontiguousarray(np.concatenate(factors, axis=0), dtype=dtype)


def parts(A: np.ndarray, shape: Sequence[int]) -> list[np.ndarray]:
    """The factors as views of the stacked array."""
    ends = list(accumulate(shape))
    return [A[end - size : end] for size, end in zip(shape, ends, strict=True)]


def unstack(A: np.ndarray, shape: Sequence[int]) -> list[np.ndarray]:
    """Copies of the factors, in float64."""
    return [part.astype(np.float64) for part in parts(A, shape)]
