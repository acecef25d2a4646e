"""Compares what a model expects of cells with what they hold, bin by bin."""

from __future__ import annotations

import numpy as np

from smartcpd.losses import Data, Loss
from smartcpd.quality.result import Bin

N_BINS = 12


class Calibration:
    """Sums over bins of the predicted mean.

    Bins hold equal shares of what is expected: bins of equally many cells would all but one be
    about cells where next to nothing happens. For real measurements they hold equally many cells.
    """

    def __init__(self, loss: Loss, mean: np.ndarray, weights: np.ndarray) -> None:
        importance = weights if loss.data is Data.REAL else weights * np.abs(mean)
        if not importance.sum() > 0:
            importance = weights
        order = np.argsort(mean, kind="stable")
        reached = np.cumsum(importance[order])
        at = np.searchsorted(reached, reached[-1] * np.arange(1, N_BINS) / N_BINS)
        self.edges = np.unique(mean[order][at])
        self.sums = np.zeros((4, self.edges.size + 1))
        self.lowest = np.full(self.edges.size + 1, np.inf)
        self.highest = -self.lowest

    def add(self, x: np.ndarray, mean: np.ndarray, v: np.ndarray, weight: np.ndarray) -> None:
        """Add the cells of a batch to their bins."""
        place = np.searchsorted(self.edges, mean)
        for total, part in zip(self.sums, (None, mean, x, v), strict=True):
            shares = weight if part is None else weight * part
            total += np.bincount(place, weights=shares, minlength=total.size)
        np.minimum.at(self.lowest, place, mean)
        np.maximum.at(self.highest, place, mean)

    def bins(self, scale: float) -> tuple[Bin, ...]:
        """Return the bins; ``scale`` is what variances are to be multiplied by."""
        cells, mean, x, v = self.sums
        return tuple(
            Bin(
                float(self.lowest[k]),
                float(self.highest[k]),
                float(cells[k]),
                float(mean[k] / cells[k]),
                float(x[k] / cells[k]),
                float(np.sqrt(scale * v[k]) / cells[k]),
            )
            for k in np.flatnonzero(cells > 0)
        )
