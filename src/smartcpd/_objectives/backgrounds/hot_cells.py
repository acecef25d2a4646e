"""Taylor's quadratic for all cells, corrected at the few where the model is large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.event_sums import Sum, event_sum
from smartcpd._data.storage.events import Events
from smartcpd._kernels.hot_cells import compiled_find_hot_cells
from smartcpd._kernels.lanes import padded
from smartcpd._objectives.backgrounds.quadratic import (
    Quadratic,
    QuadraticLoss,
    quadratic_sum,
    square_sum,
)
from smartcpd.losses import Loss

THRESHOLD = 0.05
"""Model values above this count as large; below, what Taylor's quadratic leaves of log(1 + m) is
less than m³ / 3 = 4e-5.
"""
MAX_CELLS = 1 << 20
MAX_VISITS = 1 << 24
MAX_GROWTH = 1.05
MAX_SQUARES = 1e9
"""The largest sum of m²; beyond, what Taylor's quadratic adds and the cells take away again is lost
to rounding.
"""


@dataclass(frozen=True)
class HotCells:
    """A background for nonnegative models that are small nearly everywhere, as those of rare events
    are.

    The cells are those that were large at the factors given to ``of``; when the factors have moved
    a good deal, they are looked up anew.
    """

    loss: Loss
    shape: tuple[int, ...]
    n_threads: int
    cells: Events
    square_sum: float
    """The sum of m² over all cells, when they were found."""

    @classmethod
    def of(
        cls, loss: Loss, shape: tuple[int, ...], n_threads: int, A: np.ndarray
    ) -> HotCells | None:
        """Find the cells that are large at A; return None where they are too many, or far too
        large.
        """
        squares = square_sum(A, shape)
        if not squares < MAX_SQUARES:
            return None
        starts = offsets(shape)
        ranking = np.concatenate(
            [np.argsort(-F, axis=0, kind="stable") for F in np.split(A, starts[1:-1])]
        )
        cells = np.empty((MAX_CELLS, len(shape)), np.uint32)
        found = compiled_find_hot_cells()(
            padded(A), A.shape[1], starts, ranking, THRESHOLD, MAX_VISITS, cells
        )
        if found < 0:
            return None
        columns = tuple(np.ascontiguousarray(c) for c in cells[:found].T)
        events = Events(columns, np.zeros(found, np.uint8), shape)
        return cls(loss, shape, n_threads, events, squares)

    def is_stale(self, A: np.ndarray) -> bool:
        """Whether other cells may have become large.

        They must not go unnoticed: Taylor's quadratic falls without bound where m exceeds 1.
        """
        return square_sum(A, self.shape) > MAX_GROWTH * self.square_sum

    def sum(self, A: np.ndarray, want_gradient: bool) -> Sum:
        slope, curvature = self.loss.taylor_at_zero(self.loss.params)
        quadratic = Quadratic(0.0, slope, curvature)
        total, gradient = quadratic_sum(A, self.shape, quadratic, want_gradient)
        correction = event_sum(
            self.cells,
            self.loss,
            "remainder",
            A,
            want_gradient,
            self.n_threads,
        )
        if want_gradient:
            return Sum(total + correction.total, gradient + correction.gradient)
        bound = np.float64(self._bound(A, curvature))
        return Sum(total + correction.total, A, float(bound * bound / 12))

    def _bound(self, A: np.ndarray, curvature: float) -> float:
        """Return a bound of what is left out at the other cells: by Taylor's theorem, at most
        |curvature| * threshold / 3 of the sum of their m², which is known.
        """
        squares = QuadraticLoss(0.0, 2.0)
        hot = event_sum(self.cells, squares, "whole", A, False, self.n_threads).total
        return abs(curvature) * THRESHOLD / 3 * max(square_sum(A, self.shape) - hot, 0.0)
