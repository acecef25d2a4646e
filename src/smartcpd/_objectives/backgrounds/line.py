"""A straight line in place of the derivative at the zeros, for sampled gradients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smartcpd._kernels.compiling import Block
from smartcpd._objectives.backgrounds.quadratic import square_sum
from smartcpd._objectives.backgrounds.sampled import model_values, weighted_cells
from smartcpd.losses import Loss

N_PILOT = 1 << 12
MAX_GROWTH = 1.1


Line = tuple[float, float]


class Lines(NamedTuple):
    """Straight lines b0 + b1 m for the derivative l'(0, m), and for its convex part.

    A falling line has no lower bound: a model that grew since the fit would be driven to infinity
    before a sampled cell could tell. Constants stand in for such lines when the sum of m² over all
    cells exceeds ``limit``.
    """

    derivative: Line
    convex: Line
    constant_derivative: Line
    constant_convex: Line
    limit: float


def fitted_lines(
    loss: Loss, shape: tuple[int, ...], A: np.ndarray, rng: np.random.Generator, convex: bool
) -> Lines:
    """The lines closest to the derivatives at random cells, or the derivatives themselves."""
    line: Line | None = None
    if loss.background is not None:
        line = loss.background[1], loss.background[2]
    convex_line = loss.convex_background if convex else (0.0, 0.0)
    if line is None or convex_line is None:
        # Large models are rare among random cells, but what a line leaves there is largest.
        pilot = weighted_cells(A.astype(np.float64), shape, N_PILOT, rng)
        m = model_values(A, pilot)
        if line is None:
            line = _fit(loss.derivative_block("float64"), loss, m, pilot.values)
        if convex_line is None:
            convex_line = _fit(loss.convex_block("float64"), loss, m, pilot.values)
        constants = (_level(line, m, pilot.values), _level(convex_line, m, pilot.values))
        falling = line[1] < 0 or convex_line[1] < 0
        limit = MAX_GROWTH * square_sum(A.astype(np.float64), shape) if falling else np.inf
        return Lines(line, convex_line, *constants, limit)
    return Lines(line, convex_line, line, convex_line, np.inf)


def _fit(block: Block, loss: Loss, m: np.ndarray, weights: np.ndarray) -> Line:
    """Fit a line by weighted least squares."""
    d = np.empty_like(m)
    block(np.zeros_like(m), m, loss.params, d)
    share = weights / weights.sum()
    centre, level = float(share @ m), float(share @ d)
    spread = float(share @ (m - centre) ** 2)
    slope = float(share @ ((m - centre) * (d - level))) / spread if spread > 0 else 0.0
    return level - slope * centre, slope


def _level(line: Line, m: np.ndarray, weights: np.ndarray) -> Line:
    """Replace a falling line by its mean."""
    if line[1] >= 0:
        return line
    return float(line[0] + line[1] * (weights @ m) / weights.sum()), 0.0
