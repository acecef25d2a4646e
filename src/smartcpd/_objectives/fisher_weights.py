"""The curvature of the loss of cells, and its mean for every row of the factors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from smartcpd._common.model_cells import slabs, values_at
from smartcpd._common.stacked import unstack
from smartcpd.losses import Domain, Loss

MIN_CELLS = 1 << 13
CELLS_A_ROW = 64
LOWEST = 1e-2
"""Smaller models, relative to the mean, are taken as this large: what they say about curvature is
extreme and mostly noise.
"""


@dataclass(frozen=True)
class Marginals:
    """Fisher weights as a mean and a relative weight for every row of the stacked factors."""

    mean: float
    rows: np.ndarray

    @classmethod
    def at(
        cls,
        A: np.ndarray,
        shape: tuple[int, ...],
        loss: Loss,
        rng: np.random.Generator,
        row_weights: list[np.ndarray] | None = None,
    ) -> Marginals:
        """Estimate the weights from random cells, or find them from all cells where those are few;
        a preconditioner needs no more.

        ``row_weights`` are the mean weights of the rows' cells, where those differ.
        """
        n_cells = max(MIN_CELLS, CELLS_A_ROW * max(shape))
        if math.prod(shape) <= n_cells:
            indices = None
            m = np.concatenate([values for _, values in slabs(unstack(A, shape))])
        else:
            indices = [rng.integers(size, size=n_cells) for size in shape]
            m = values_at(unstack(A, shape), np.ones(A.shape[1]), indices)
        if loss.domain is Domain.NONNEGATIVE:
            m = np.maximum(m, LOWEST * m.mean())
        w = loss.expected_bends(m)
        mean = float(w.mean())
        if not np.isfinite(mean) or mean <= 0:
            return cls(1.0, np.ones(A.shape[0]))
        rows = []
        for mode, (sums, counts) in enumerate(_by_row(w, shape, indices)):
            # A row with few cells in the sample keeps near the mean.
            row = np.clip((sums / mean + 4.0) / (counts + 4.0), 1e-3, 1e3)
            if row_weights is not None:
                own = row_weights[mode]
                row = row * np.clip(own / own.mean(), 1e-3, 1e3)
            rows.append(row)
        return cls(mean, np.concatenate(rows))


def _by_row(
    w: np.ndarray, shape: tuple[int, ...], indices: list[np.ndarray] | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each mode the sums of numbers over the cells of its rows, and how many cells those
    are; the numbers belong to the cells with these indices, or to all of them in order.
    """
    for mode, size in enumerate(shape):
        if indices is None:
            slices = w.reshape(math.prod(shape[:mode]), size, -1)
            yield slices.sum(axis=(0, 2)), np.full(size, w.size // size)
        else:
            counts = np.bincount(indices[mode], minlength=size)
            yield np.bincount(indices[mode], w, minlength=size), counts
