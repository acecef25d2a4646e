"""The model value that describes a cell best, where no formula gives it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Slopes = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""A function that takes data and model values and returns derivatives of the loss."""

SOLVED = 1e-4
DOUBLINGS = 40
HALVINGS = 48


def settled(slopes: Slopes, x: np.ndarray, m: np.ndarray, bounded: bool) -> np.ndarray:
    """Model values where the loss at x is least: those given, or roots of the derivative near them.

    ``bounded`` models must not be negative.
    """
    if bounded:
        m = np.maximum(m, 0.0)
    slope = slopes(x, m)
    scale = np.abs(m) if bounded else np.maximum(np.abs(m), 1.0)
    open_cells = np.abs(slope) * scale > SOLVED
    if open_cells.any():
        m[open_cells] = _root(slopes, x[open_cells], m[open_cells], slope[open_cells], bounded)
    return m


def _root(
    slopes: Slopes, x: np.ndarray, m: np.ndarray, slope: np.ndarray, bounded: bool
) -> np.ndarray:
    """Find where the derivative changes its sign, by steps that double and then by halving."""
    inside, outside = m.copy(), m.copy()
    step = 0.1 * np.abs(m) + 1e-3
    direction = -np.sign(slope)
    for _ in range(DOUBLINGS):
        beyond = np.sign(slopes(x, outside)) != np.sign(slope)
        if beyond.all():
            break
        inside = np.where(beyond, inside, outside)
        outside = np.where(beyond, outside, outside + direction * step)
        if bounded:
            outside = np.maximum(outside, 0.0)
        step *= 2.0
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        before = np.sign(slopes(x, middle)) == np.sign(slope)
        inside, outside = np.where(before, middle, inside), np.where(before, outside, middle)
    return 0.5 * (inside + outside)
