"""Whether two sets of factors have the same components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartcpd._fitting.model import best_pairs, unit_columns

SAME = 0.95
"""The product of cosines from which on two components are taken for the same."""


def same_components(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], least: float = SAME
) -> bool:
    """Whether every component of one has its like in the other, whatever their sizes and order."""
    pairs = zip(first, second, strict=True)
    cosines = np.prod([unit_columns(A)[0].T @ unit_columns(B)[0] for A, B in pairs], axis=0)
    if not np.isfinite(cosines).all():
        return False
    return bool(cosines[best_pairs(cosines)].min() >= least)
