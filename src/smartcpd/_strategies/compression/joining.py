"""Neighbouring modes taken for one, so that a tensor of many short modes can be compressed.

A basis of a mode with fewer rows than there are components compresses nothing. A tensor of order 16
with two rows a mode is one of order 3 with 64, 32 and 32 rows, whose components are the same: their
columns are products of the columns of the short modes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from smartcpd._data.storage import Dense

ORDER = 3


@dataclass(frozen=True)
class Joining:
    """A grouping of modes that are taken for one: the sizes of the modes, group by group."""

    groups: list[tuple[int, ...]]

    @classmethod
    def of(cls, shape: tuple[int, ...], rank: int) -> Joining:
        """Three groups, each with as many rows as possible, where modes are many and short."""
        if len(shape) <= ORDER or min(shape) >= rank:
            return cls([(size,) for size in shape])

        def split(cuts: tuple[int, ...]) -> list[tuple[int, ...]]:
            ends = (0, *cuts, len(shape))
            return [shape[a:b] for a, b in pairwise(ends)]

        ways = (split(cuts) for cuts in combinations(range(1, len(shape)), ORDER - 1))
        return cls(max(ways, key=lambda groups: min(math.prod(group) for group in groups)))

    def joined(self, storage: Dense) -> Dense:
        """The same cells, with fewer and longer modes."""
        shape = [math.prod(group) for group in self.groups]
        if len(shape) == len(storage.shape):
            return storage
        return storage.reshaped(shape)

    def split(self, factors: list[np.ndarray]) -> list[np.ndarray]:
        """Return factors of all modes: the products of columns that are closest to those given."""
        pairs = zip(factors, self.groups, strict=True)
        return [part for F, group in pairs for part in _split(F, group)]


def _split(F: np.ndarray, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """Return a factor of each mode: the leading singular vectors of every column."""
    if len(sizes) == 1:
        return [F]
    rank = F.shape[1]
    columns = left = F.T.reshape(rank, *sizes)
    parts = []
    for mode, size in enumerate(sizes, 1):
        unfolded = np.moveaxis(columns, mode, 1).reshape(rank, size, -1)
        U = np.linalg.svd(unfolded, full_matrices=False)[0][:, :, 0]
        parts.append(U.T)
        left = np.einsum("rk,rk...->r...", U, left)
    parts[0] = parts[0] * left
    return parts
