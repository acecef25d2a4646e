"""Blocks of a tensor: some neighbouring rows of one mode, and all rows of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import offsets


@dataclass(frozen=True)
class RowRange:
    """Rows ``first`` to ``last`` of a mode of a tensor: a smaller tensor, with factors of its own.

    Its stacked factors are those rows of the whole that it has a part in.
    """

    whole: tuple[int, ...]
    mode: int
    first: int
    last: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the smaller tensor."""
        sizes = list(self.whole)
        sizes[self.mode] = self.last - self.first + 1
        return tuple(sizes)

    @property
    def rows(self) -> slice:
        """The block's rows of its mode, among those of all stacked factors."""
        start = int(offsets(self.whole)[self.mode])
        return slice(start + self.first, start + self.last + 1)

    @property
    def local_rows(self) -> slice:
        """The block's rows of its mode, among its own stacked factors."""
        start = int(offsets(self.whole)[self.mode])
        return slice(start, start + self.last - self.first + 1)

    def take(self, A: np.ndarray) -> np.ndarray:
        """The stacked factors of the range, from those of the whole."""
        start, stop = offsets(self.whole)[self.mode : self.mode + 2]
        return np.concatenate([A[:start], A[self.rows], A[stop:]])

    def add(self, G: np.ndarray, local: np.ndarray) -> None:
        """Add stacked rows of the range to those of the whole."""
        start, stop = offsets(self.whole)[self.mode : self.mode + 2]
        G[:start] += local[:start]
        G[self.rows] += local[self.local_rows]
        G[stop:] += local[self.local_rows.stop :]
