"""The cells and the rows of modes that a model describes worst."""

from __future__ import annotations

import math

import numpy as np

from smartcpd.losses import Loss
from smartcpd.quality.noise import has_scale
from smartcpd.quality.reading import Batch
from smartcpd.quality.result import HotCell, HotSlice

N_CELLS = 20
N_SLICES = 10
LEAST_EXPECTED = 5.0
"""Rows with fewer expected events than this are left out, as they scatter by chance."""


class WorstCells:
    """The cells with the largest residuals seen so far."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, ...], HotCell] = {}

    def add(self, batch: Batch, mean: np.ndarray, deviance: np.ndarray) -> None:
        """Add cells with their deviances, one by one and not weighted."""
        # A sample may hold a cell more than once.
        count = min(8 * N_CELLS, deviance.size)
        for k in np.argpartition(deviance, deviance.size - count)[-count:]:
            index = tuple(int(i[k]) for i in batch.places)
            residual = math.copysign(math.sqrt(deviance[k]), batch.x[k] - mean[k])
            self._found[index] = HotCell(index, float(batch.x[k]), float(mean[k]), residual)
        self._found = {cell.index: cell for cell in self._sorted()}

    def largest(self, scale: float) -> tuple[HotCell, ...]:
        """Return the largest residuals in units of the noise, whose variance is ``scale``."""
        return tuple(
            HotCell(cell.index, cell.observed, cell.expected, cell.residual / math.sqrt(scale))
            for cell in self._sorted()
            if cell.residual
        )

    def _sorted(self) -> list[HotCell]:
        order = sorted(self._found.values(), key=lambda cell: (-abs(cell.residual), cell.index))
        return order[:N_CELLS]


class SliceSums:
    """Sums over the rows of every mode."""

    def __init__(self, shape: tuple[int, ...], loss: Loss) -> None:
        self.loss = loss
        self.sums = [np.zeros((5, size)) for size in shape]

    def add(self, batch: Batch, mean: np.ndarray, squares: np.ndarray, v: np.ndarray) -> None:
        """``squares`` of the residuals of the cells, and what is expected of them."""
        parts = (batch.x, mean, squares, v, self.loss.square_variance(v))
        for part_number, part in enumerate(parts):
            shares = batch.weight * part
            for sums, rows in zip(self.sums, batch.places, strict=True):
                sums[part_number] += np.bincount(rows, weights=shares, minlength=sums.shape[1])

    @property
    def scatter(self) -> float:
        """Return the sum of squared residuals over the sum of the variances of the model."""
        _, _, squares, v, _ = self.sums[0].sum(axis=1)
        return float(squares / v)

    def worst(self) -> tuple[HotSlice, ...]:
        """Return the rows that clearly scatter more than the rest."""
        found = []
        for mode, (x, mean, squares, v, spread) in enumerate(self.sums):
            usual = _usual(squares, v)
            if x.size < 2 or not usual > 0:
                continue
            known = np.where(v > 0, v, np.inf)
            score = (squares - usual * v) / (usual * np.sqrt(np.where(spread > 0, spread, np.inf)))
            if has_scale(self.loss):
                score[mean < LEAST_EXPECTED] = 0.0
            for row in np.argsort(-score, kind="stable")[:N_SLICES]:
                ratio = float(squares[row] / (usual * known[row]))
                entry = HotSlice(
                    mode, int(row), float(x[row]), float(mean[row]), ratio, float(score[row])
                )
                if entry.score > 2.0:
                    found.append(entry)
        found.sort(key=lambda entry: (-entry.score, entry.mode, entry.index))
        return tuple(found[:N_SLICES])


def _usual(squares: np.ndarray, v: np.ndarray) -> float:
    """Return the ratio of squares to variances of the middle row, each as heavy as its variance.

    A ratio of totals would make a single wild cell the measure of all others.
    """
    rows = np.flatnonzero(v > 0)
    if not rows.size:
        return 0.0
    ratio = squares[rows] / v[rows]
    order = np.argsort(ratio, kind="stable")
    reached = np.cumsum(v[rows][order])
    return float(ratio[order][np.searchsorted(reached, 0.5 * reached[-1])])
