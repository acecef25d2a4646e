"""Zeros of a sparse tensor, drawn where they matter, with their chances of being drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.storage import SparseTensor
from smartcpd._data.storage.observed import stacked_rows, weights_at


@dataclass(frozen=True)
class ZeroDraw:
    """A draw of cells, half of them uniform, half where the slices hold much.

    A model is large about where the slices through a cell are; among the zeros, those are the ones
    that tell models apart, and in a huge tensor a uniform draw would hardly meet them.
    """

    shape: tuple[int, ...]
    shares: list[np.ndarray]
    """The share of the total that each slice holds, mode by mode."""
    count: int
    most: float
    """The highest chance that a cell may have."""

    @classmethod
    def of(cls, storage: SparseTensor, count: int, most: float) -> ZeroDraw:
        shares = []
        size = np.abs(storage.values.astype(np.float64))
        for column, length in zip(storage.indices, storage.shape, strict=True):
            sums = np.bincount(column, weights=size, minlength=length)
            total = sums.sum()
            shares.append(sums / total if total > 0 else np.full(length, 1.0 / length))
        return cls(storage.shape, shares, count, most)

    def chance(self, index: Sequence[np.ndarray]) -> np.ndarray:
        """Return the chance of some cells to be drawn, if they are zeros."""
        return np.minimum(self._met(index), self.most)

    def cells(
        self, storage: SparseTensor, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return zeros that are not missing, each once, and their chances."""
        drawn = SparseTensor(self._columns(rng), 1, self.shape)  # this drops what comes twice
        index = [column.astype(np.intp) for column in drawn.indices]
        met = self._met(index)
        x = np.empty(met.size)
        storage.read_cells(stacked_rows(self.shape, index), x)
        plain = (x == 0) & (weights_at(storage, index) == 1)
        kept = plain & (rng.random(met.size) * met < self.most)
        return [column[kept] for column in index], np.minimum(met[kept], self.most)

    def _columns(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        columns = []
        anywhere = rng.random(self.count) < 0.5
        for length, share in zip(self.shape, self.shares, strict=True):
            up_to = np.cumsum(share)
            near = np.searchsorted(up_to, rng.random(self.count) * up_to[-1], side="right")
            uniform = rng.integers(length, size=self.count)
            columns.append(np.where(anywhere, uniform, np.minimum(near, length - 1)))
        return tuple(columns)

    def _met(self, index: Sequence[np.ndarray]) -> np.ndarray:
        """Return the chance that ``count`` draws meet a cell."""
        uniform, product = 1.0, np.ones(len(index[0]))
        for length, share, column in zip(self.shape, self.shares, index, strict=True):
            uniform /= length
            product *= share[column]
        return -np.expm1(self.count * np.log1p(-np.minimum(0.5 * (uniform + product), 0.5)))
