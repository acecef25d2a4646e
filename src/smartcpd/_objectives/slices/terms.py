"""The loss of single cells with its first two derivatives, and a quadratic in its place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smartcpd._objectives.backgrounds.quadratic import Quadratic
from smartcpd.losses import Loss


class Terms(NamedTuple):
    """Value, first and second derivative by the model, cell by cell; not clipped."""

    value: np.ndarray
    slope: np.ndarray
    bend: np.ndarray

    def weighted(self, w: np.ndarray | None) -> Terms:
        """Multiply by the weights; the result is exactly 0 for a weight of 0."""
        if w is None:
            return self
        return Terms(*(np.where(w != 0, w * part, 0.0) for part in self))

    def minus(self, other: Terms) -> Terms:
        return Terms(*(a - b for a, b in zip(self, other, strict=True)))


def cell_terms(loss: Loss, x: np.ndarray, m: np.ndarray) -> Terms:
    """Return the terms of l(x, m)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a trial may go too far
        return Terms(loss.values_at(x, m), loss.slopes_at(x, m), loss.bends_at(x, m))


def quadratic_terms(q: Quadratic, m: np.ndarray) -> Terms:
    """Return the terms of c0 + c1 m + c2 m² / 2."""
    return Terms(q.at(m), q.c1 + q.c2 * m, np.full_like(m, q.c2))
