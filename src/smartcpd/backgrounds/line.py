"""A line in place of the derivative at the zeros, for sampled gradients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smartcpd.cells import values_at
from smartcpd.kernels.compiling import Block
from smartcpd.losses import Loss
from smartcpd.stack import unstack

N_PILOT = 1 << 12


class Lines(NamedTuple):
    """b0 + b1 m for the derivative l'(0, m), and for its convex part."""

    derivative: tuple[float, float]
    convex: tuple[float, float]


def fitted_lines(
    loss: Loss, shape: tuple[int, ...], A: np.ndarray, rng: np.random.Generator, convex: bool
) -> Lines:
    """The lines closest to the derivatives at random cells, or the derivatives themselves."""
    line = None if loss.background is None else (loss.background[1], loss.background[2])
    convex_line = loss.convex_background if convex else (0.0, 0.0)
    if line is None or convex_line is None:
        cells = [rng.integers(n, size=N_PILOT) for n in shape]
        m = values_at(unstack(A, shape), np.ones(A.shape[1]), cells)
        if line is None:
            line = _fit(loss.derivative_block("float64"), loss, m)
        if convex_line is None:
            convex_line = _fit(loss.convex_block("float64"), loss, m)
    return Lines(line, convex_line)


def _fit(block: Block, loss: Loss, m: np.ndarray) -> tuple[float, float]:
    d = np.empty_like(m)
    block(np.zeros_like(m), m, loss.params, d)
    centred = m - m.mean()
    spread = float(centred @ centred)
    slope = float(centred @ d) / spread if spread > 0 else 0.0
    return float(d.mean() - slope * m.mean()), slope
