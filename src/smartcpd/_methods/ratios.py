"""Changes of nonnegative numbers as ratios, for steps that are straight in the logarithm."""

from __future__ import annotations

import numpy as np

MAX_CHANGE = 5.0
"""The most an entry's ratio to what it was before may count for."""
TINY = 1e-300


def ratio(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Return the ratios by which entries changed, cut to those that are believed to go on."""
    return np.clip(new / np.maximum(old, TINY), 1 / MAX_CHANGE, MAX_CHANGE)
