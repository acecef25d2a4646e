"""Deviance: how much worse a model is than one that repeats the data, whatever the loss."""

from __future__ import annotations

import math

import numpy as np

from smartcpd._kernels.compiling import Block
from smartcpd.losses import Domain, Loss
from smartcpd.losses.rayleigh import Rayleigh

SOLVED = 1e-4
DOUBLINGS = 40
HALVINGS = 48
GOLDEN = 0.6180339887498949


def cell_losses(loss: Loss, x: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return l(x, m), cell by cell."""
    return _entrywise(loss.values_block("float64"), loss, x, m)


def saturated_losses(loss: Loss, x: np.ndarray) -> np.ndarray:
    """Return the least loss that any model value has at x, cell by cell."""
    kinds, where = np.unique(x, return_inverse=True)
    return cell_losses(loss, kinds, saturated(loss, kinds))[where.reshape(x.shape)]


def saturated(loss: Loss, x: np.ndarray) -> np.ndarray:
    """The model values that describe x best.

    The link gives them for nearly every loss. Where the derivative does not vanish there, as for a
    user's own loss, its root is searched.
    """
    if isinstance(loss, Rayleigh):
        m = 0.5 * math.sqrt(math.pi) * x.astype(np.float64)
    elif type(loss).link is Loss.link:
        m = x.astype(np.float64)
    else:
        m = np.array([loss.link(value) for value in x.tolist()], dtype=np.float64)
    bounded = loss.domain is Domain.NONNEGATIVE
    if bounded:
        m = np.maximum(m, 0.0)
    slope = _slopes(loss, x, m)
    scale = np.abs(m) if bounded else np.maximum(np.abs(m), 1.0)
    open_cells = np.abs(slope) * scale > SOLVED
    if open_cells.any():
        m[open_cells] = _root(loss, x[open_cells], m[open_cells], slope[open_cells], bounded)
    return m


def best_constant(loss: Loss, x: np.ndarray, weights: np.ndarray) -> float:
    """Return the one model value that describes weighted data best, by golden section."""
    ends = saturated(loss, np.array([x.min(), x.max()], dtype=np.float64))
    low, high = float(ends.min()), float(ends.max())

    def total(m: float) -> float:
        return float(weights @ cell_losses(loss, x, np.full(x.size, m)))

    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [total(m) for m in inner]
    for _ in range(64):
        if values[0] <= values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - GOLDEN * (high - low)
            values[0] = total(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + GOLDEN * (high - low)
            values[1] = total(inner[1])
    # Where the loss is flat, rounding decides the search: the mean's own value may be better.
    at_mean = loss.link(float(weights @ x / weights.sum()))
    return min((at_mean, 0.5 * (low + high), *ends.tolist()), key=total)


def _root(loss: Loss, x: np.ndarray, m: np.ndarray, slope: np.ndarray, bounded: bool) -> np.ndarray:
    """Find where the derivative changes its sign, by steps that double, then by halving."""
    inside, outside = m.copy(), m.copy()
    step = 0.1 * np.abs(m) + 1e-3
    direction = -np.sign(slope)
    for _ in range(DOUBLINGS):
        beyond = np.sign(_slopes(loss, x, outside)) != np.sign(slope)
        if beyond.all():
            break
        inside = np.where(beyond, inside, outside)
        outside = np.where(beyond, outside, outside + direction * step)
        if bounded:
            outside = np.maximum(outside, 0.0)
        step *= 2.0
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        before = np.sign(_slopes(loss, x, middle)) == np.sign(slope)
        inside, outside = np.where(before, middle, inside), np.where(before, outside, middle)
    return 0.5 * (inside + outside)


def _slopes(loss: Loss, x: np.ndarray, m: np.ndarray) -> np.ndarray:
    return _entrywise(loss.derivative_block("float64"), loss, x, m)


def _entrywise(block: Block, loss: Loss, x: np.ndarray, m: np.ndarray) -> np.ndarray:
    x, m = (np.ascontiguousarray(a, dtype=np.float64) for a in (x, m))
    out = np.empty_like(m)
    block(x, m, loss.params, out)
    return out
