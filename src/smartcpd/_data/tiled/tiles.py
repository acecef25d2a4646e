"""The order in which blocks come into memory: tiles, made of some blocks of every mode.

All tiles of an epoch together are the whole tensor, each cell once. Which blocks share a tile and
which tile comes when is random; but tiles whose rows have been seen least come first, so that every
row is seen early.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.tiled.source import Edges

CONSIDERED = 64
"""Number of tiles among which the next one is chosen."""

RowsByMode = list[np.ndarray]
"""Some rows of each mode, in order."""


@dataclass(frozen=True)
class Tiling:
    """How many blocks of each mode a tile has."""

    edges: Edges
    blocks: tuple[int, ...]

    @classmethod
    def within(cls, edges: Edges, n_cells: float) -> Tiling:
        """Tiles of at most ``n_cells``, as far as blocks allow, about as long in every mode."""
        blocks = [len(e) - 1 for e in edges]
        longest = [int(np.diff(e).max()) for e in edges]

        def rows(mode: int) -> int:
            return blocks[mode] * longest[mode]

        while np.prod([float(rows(k)) for k in range(len(edges))]) > n_cells:
            mode = max((k for k in range(len(edges)) if blocks[k] > 1), key=rows, default=None)
            if mode is None:
                break
            blocks[mode] = -(-blocks[mode] // 2)
        return cls(edges, tuple(blocks))

    @property
    def cells(self) -> int:
        """Number of cells in the largest tile."""
        longest = (
            np.sort(np.diff(e))[-n:].sum() for e, n in zip(self.edges, self.blocks, strict=True)
        )
        return int(np.prod([int(n) for n in longest], dtype=object))

    @property
    def most_rows(self) -> int:
        """Number of rows of all modes that no tile exceeds."""
        return sum(int(np.diff(e).max()) * n for e, n in zip(self.edges, self.blocks, strict=True))

    @property
    def groups(self) -> tuple[int, ...]:
        """Number of groups of blocks in each mode."""
        pairs = zip(self.edges, self.blocks, strict=True)
        return tuple(-(-(len(e) - 1) // n) for e, n in pairs)

    @property
    def count(self) -> int:
        """Number of tiles in an epoch."""
        return int(np.prod(self.groups, dtype=object))

    def epoch(self, rng: np.random.Generator) -> Iterator[RowsByMode]:
        """The rows of every tile, all tiles once."""
        by_mode = [
            [rows_of(e, chosen) for chosen in np.array_split(rng.permutation(len(e) - 1), n)]
            for e, n in zip(self.edges, self.groups, strict=True)
        ]
        waiting = list(itertools.product(*(range(n) for n in self.groups)))
        seen = [np.zeros(n) for n in self.groups]
        while waiting:
            sample = rng.integers(len(waiting), size=CONSIDERED)
            at = min(sample, key=lambda k: sum(s[g] for s, g in zip(seen, waiting[k], strict=True)))
            waiting[at], waiting[-1] = waiting[-1], waiting[at]
            groups = waiting.pop()
            for s, g in zip(seen, groups, strict=True):
                s[g] += 1
            yield [by_mode[mode][g] for mode, g in enumerate(groups)]


def rows_of(edges: np.ndarray, blocks: Sequence[int] | np.ndarray) -> np.ndarray:
    """All rows of some blocks of a mode, in order."""
    return np.concatenate([np.arange(edges[b], edges[b + 1]) for b in np.sort(blocks)])


def some_blocks(edges: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Random blocks of a mode, as many as it takes for so many rows."""
    order = rng.permutation(len(edges) - 1)
    enough = np.searchsorted(np.cumsum(np.diff(edges)[order]), n_rows)
    return order[: enough + 1]
