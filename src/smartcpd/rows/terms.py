"""The loss of single cells with its first two derivatives, and a quadratic in its place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smartcpd.backgrounds.quadratic import Quadratic
from smartcpd.losses import Domain, Loss

STEP = 1e-6
"""Of the model, between the two derivatives whose difference is the curvature."""
SMALLEST_STEP = 1e-10


class Terms(NamedTuple):
    """Value, first and second derivative by the model, cell by cell; not clipped."""

    value: np.ndarray
    slope: np.ndarray
    bend: np.ndarray

    def weighted(self, w: np.ndarray | None) -> Terms:
        """Times the weights; exactly 0 for a weight of 0."""
        if w is None:
            return self
        return Terms(*(np.where(w != 0, w * part, 0.0) for part in self))

    def minus(self, other: Terms) -> Terms:
        return Terms(*(a - b for a, b in zip(self, other, strict=True)))


def cell_terms(loss: Loss, x: np.ndarray, m: np.ndarray) -> Terms:
    """Of l(x, m).

    The curvature is a difference of derivatives, so that a user's own loss has one as well.
    """
    x, m = (np.ascontiguousarray(a, dtype=np.float64) for a in (x, m))
    shape, x, m = m.shape, x.reshape(-1), m.reshape(-1)
    derivative = loss.derivative_block("float64")
    value, slope, beyond = np.empty_like(m), np.empty_like(m), np.empty_like(m)
    h = STEP * np.abs(m) + SMALLEST_STEP
    if loss.domain is Domain.REAL:
        h += STEP * (1.0 + np.abs(x))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a trial may go too far
        loss.values_block("float64")(x, m, loss.params, value)
        derivative(x, m, loss.params, slope)
        derivative(x, m + h, loss.params, beyond)
        bend = (beyond - slope) / h
    return Terms(*(part.reshape(shape) for part in (value, slope, bend)))


def quadratic_terms(q: Quadratic, m: np.ndarray) -> Terms:
    """Of c0 + c1 m + c2 m² / 2."""
    return Terms(q.at(m), q.c1 + q.c2 * m, np.full_like(m, q.c2))
