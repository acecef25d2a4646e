"""The loss of single cells with its first two derivatives, and a quadratic in its place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smartcpd._objectives.backgrounds.quadratic import Quadratic
from smartcpd.losses import Loss
from smartcpd.losses.rayleigh import Rayleigh


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
    shape, x, m = m.shape, _flat(x), _flat(m)
    value, slope, bend = np.empty_like(m), np.empty_like(m), np.empty_like(m)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a trial may go too far
        loss.values_block("float64")(x, m, loss.params, value)
        loss.derivative_block("float64")(x, m, loss.params, slope)
        loss.bend_block("float64")(x, m, loss.params, bend)
    return Terms(*(part.reshape(shape) for part in (value, slope, bend)))


def typical_data(loss: Loss, m: np.ndarray) -> np.ndarray:
    """Data at which the loss of cells whose model is m bends as it does on average.

    Losses are linear in x, or in x² (rayleigh), up to what the model does not change; so the
    expectation is the value at one x. Those of "huber" bend where the data is near.
    """
    m = np.ascontiguousarray(m, dtype=np.float64)
    x = 2.0 / np.sqrt(np.pi) * m if isinstance(loss, Rayleigh) else loss.mean(m, loss.params)
    return np.require(x, np.float64, ["C", "W"])


def _flat(a: np.ndarray) -> np.ndarray:
    """Return a flat array as compiled blocks take it; a copy where the user's array is
    read-only.
    """
    return np.require(a, np.float64, ["C", "W", "E"]).reshape(-1)


def quadratic_terms(q: Quadratic, m: np.ndarray) -> Terms:
    """Return the terms of c0 + c1 m + c2 m² / 2."""
    return Terms(q.at(m), q.c1 + q.c2 * m, np.full_like(m, q.c2))
