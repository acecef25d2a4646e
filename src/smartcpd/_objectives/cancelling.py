"""Sums whose terms may cancel, of which rounding leaves anything."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

ROUNDING, HARMLESS = 1e-13, 1e-6
"""What rounding may leave of a sum, relative to its terms, and the share of it that may be so."""

Sums = TypeVar("Sums", float, np.ndarray)


def at_worst(total: Sums, behind: Sums) -> Sums:
    """Return totals, with rounding counted against those of which a background leaves little else.

    A missing cell takes away what the background has in its place. Where a model is huge in such
    cells, what is left is no loss at all, and a descent would take it for a low one.
    """
    with np.errstate(invalid="ignore"):
        rounding = ROUNDING * np.abs(behind)
        found = np.where(rounding > HARMLESS * np.abs(total), total + rounding, total)
    found = np.where(np.isinf(behind), np.inf, found)
    return found if isinstance(total, np.ndarray) else float(found)
