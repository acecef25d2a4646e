"""The proximal map of a convex loss, where no formula gives it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from smartcpd.losses.kinds import Domain

MAX_STEPS = 100
SMALL = 1e-12
"""A step this small, relative to where it ends, is the last."""


class Convex(Protocol):
    """The derivatives of a loss, cell by cell, which are all that is asked of it."""

    @property
    def domain(self) -> Domain: ...

    def slopes_at(self, x: np.ndarray, m: np.ndarray) -> np.ndarray: ...

    def bends_at(self, x: np.ndarray, m: np.ndarray) -> np.ndarray: ...


def proximal(loss: Convex, x: np.ndarray, v: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
    """The m that minimise l(x, m) + stiffness (m - v)² / 2: Newton's method inside a bracket.

    The derivative rises by at least the stiffness, so that its value anywhere says how far the root
    is at most. A step that leaves the bracket is replaced by its middle, and so is the step after
    one that did not halve the derivative: Newton's method may go to and fro across a sigmoid.
    """
    shape = np.broadcast_shapes(np.shape(x), np.shape(v), np.shape(stiffness))
    x, v, stiffness = (np.broadcast_to(a, shape).reshape(-1) for a in (x, v, stiffness))
    least = 0.0 if loss.domain is Domain.NONNEGATIVE else -np.inf
    m = np.maximum(v, least)
    slope = loss.slopes_at(x, m) + stiffness * (m - v)
    reach = m - slope / stiffness
    low, high = np.maximum(np.minimum(m, reach), least), np.maximum(np.maximum(m, reach), least)
    steepness = np.full(m.shape, np.inf)
    if least == 0.0:
        high[loss.slopes_at(x, np.zeros_like(m)) >= stiffness * v] = 0.0
        m = np.minimum(m, high)
    open_ = np.flatnonzero(high > low)
    for _ in range(MAX_STEPS):
        if not open_.size:
            break
        at, s = m[open_], stiffness[open_]
        slope = loss.slopes_at(x[open_], at) + s * (at - v[open_])
        low[open_] = np.where(slope <= 0, at, low[open_])
        high[open_] = np.where(slope >= 0, at, high[open_])
        step = at - slope / (np.maximum(loss.bends_at(x[open_], at), 0.0) + s)
        sound = (step >= low[open_]) & (step <= high[open_])
        sound &= np.abs(slope) <= 0.5 * steepness[open_]
        steepness[open_] = np.abs(slope)
        # The bracket may stay wide: from one side, Newton's steps close in on the root without it.
        last = np.abs(step - at) <= SMALL * np.maximum(np.abs(at), SMALL)
        m[open_] = np.where(sound | last, step, 0.5 * (low[open_] + high[open_]))
        open_ = open_[~last]
    return np.maximum(m, least).reshape(shape)
