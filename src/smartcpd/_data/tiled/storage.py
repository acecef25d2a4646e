"""A dense tensor of which only blocks are in memory."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd._common.memory import readable
from smartcpd._common.prefetching import prefetched
from smartcpd._data.storage.base import DenseStorage
from smartcpd._data.storage.dense import Dense
from smartcpd._data.tiled.fit_needs import TiledFitNeeds
from smartcpd._data.tiled.source import Edges, Source, joined, largest_block, slabs
from smartcpd._data.tiled.tiles import RowsByMode, Tiling, rows_of, some_blocks
from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.losses import Loss

JOINED_CELLS = 1 << 20
"""Chunks are read together up to this many cells, if they are smaller."""
JOINED_CHUNKS = 512
"""About how many chunks are read together at the most: each takes a while to find, and no clock is
looked at meanwhile."""
CONTIGUOUS_CELLS = 1 << 23
"""Number of cells of a block of an array without chunks."""
GLIMPSED_BLOCKS = 4
GLIMPSED_CELLS = 1 << 16
TILE_SHARE = 0.35
"""The share of the memory that a tile may take: there are two, the one in use and the next, and
what a fit needs itself.
"""
MOST_TILES = 1 << 18
"""The most tiles that an epoch may have: they are drawn from a list that is in memory."""
BLOCK_SHARE = 0.2
"""The share of the memory that a block may take while its cells are put into a tile."""

STEP_PAIRS = 40
"""Arrays like the rows of a tile that a descent on it keeps."""

Where = tuple[slice, ...]


@dataclass(frozen=True)
class Glimpse:
    """Some cells from a few blocks, to judge scales by, and how long it took to read those."""

    indices: tuple[np.ndarray, ...]
    x: np.ndarray
    weights: np.ndarray
    lowest: float
    seconds_a_cell: float


@dataclass(frozen=True, eq=False)
class TiledArray(DenseStorage):
    """A dense array, with its mask and weights, of which blocks are read when they are needed.

    Means are those of a glimpse. What a cell holds is checked when its block is read.
    """

    source: Source
    max_memory: int
    mask: Any = None
    weights: Any = None
    cluster: Any = None
    """The `ArrayWorkers` that descend on tiles and add up blocks; None for this process."""
    tile_cells: float = math.inf
    """The most cells that a tile may have, whatever memory allows."""

    def __post_init__(self) -> None:
        block = largest_block(self.edges) * self.cell_bytes
        if block > BLOCK_SHARE * self.max_memory:
            raise InvalidParameterError(
                f"{self.source.title} of shape {self.shape} comes in chunks of up to "
                f"{readable(block)}, more than a fifth of max_memory={readable(self.max_memory)}. "
                f"Allow {readable(block / BLOCK_SHARE)}, or store it in smaller chunks."
            )
        if self.tiling.count > MOST_TILES:
            raise InvalidParameterError(
                f"{self.source.title} of shape {self.shape} claims "
                f"{readable(self.n_cells * self.source.dtype.itemsize)}, which with max_memory="
                f"{readable(self.max_memory)} would be read in {self.tiling.count:,} tiles; the "
                f"limit is {MOST_TILES:,}. Allow more memory, or pass a part of it."
            )

    @cached_property
    def edges(self) -> Edges:
        """Where blocks begin and end: chunks, several together where those are small."""
        most = BLOCK_SHARE * self.max_memory / self.cell_bytes
        if self.source.chunks is None:
            return slabs(self.shape, min(CONTIGUOUS_CELLS, most / 4))
        n_chunks = math.prod(len(e) - 1 for e in self.source.chunks)
        few = JOINED_CHUNKS * self.n_cells / n_chunks
        return joined(self.source.chunks, min(JOINED_CELLS, most / 4, few))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype:
        return self.source.dtype

    @property
    def on_disk(self) -> list[Any]:
        """The arrays that blocks are read from: cells and, if there are any, masks and weights."""
        return [x for x in (self.source.array, self.mask, self.weights) if x is not None]

    @property
    def cell_bytes(self) -> int:
        """Bytes of a cell in memory, with its weight if it has one."""
        own = 0 if self.weights is None else np.dtype(self.weights.dtype).itemsize
        holes = self.mask is not None or self.source.dtype.kind == "f"
        return self.source.dtype.itemsize + max(own, int(holes))

    @property
    def weighted(self) -> bool:
        """Whether cells have weights, as far as the glimpse shows."""
        return self.n_missing > 0 or self.weights is not None

    @cached_property
    def n_observed(self) -> float:
        """About how much all cells weigh together."""
        return float(self.glimpse.weights.mean()) * self.n_cells

    @cached_property
    def n_missing(self) -> int:
        """About how many cells are missing."""
        return int(np.mean(self.glimpse.weights == 0) * self.n_cells)

    @cached_property
    def heaviest(self) -> float:
        return max(1.0, float(self.glimpse.weights.max()))

    @property
    def row_weights(self) -> list[np.ndarray]:
        return [np.ones(size) for size in self.shape]

    def unobserved_rows(self) -> list[np.ndarray]:
        """Return no rows: they are not known before everything is read, and the solver that reads
        blocks tells.
        """
        return [np.empty(0, np.int64) for _ in self.shape]

    def mean(self) -> float:
        return self._mean(self.glimpse.x)

    def typical(self) -> float:
        return self.mean()

    def mean_square(self) -> float:
        return self._mean(self.glimpse.x**2)

    def lowest(self) -> float:
        return self.glimpse.lowest

    def check(self, loss: Loss) -> None:
        """Check what the glimpse shows; the rest is checked block by block as it is read."""
        self.sample.check(loss)

    @property
    def sample(self) -> Dense:
        """The observed cells of the glimpse, in no particular form."""
        return Dense(self.glimpse.x[self.glimpse.weights != 0][None])

    def observed_slabs(self) -> Iterator[tuple[int, np.ndarray, None]]:
        """Yield the values of the sample, which tell what kind of data this is."""
        yield 0, self.sample.array, None

    def _mean(self, values: np.ndarray) -> float:
        w = self.glimpse.weights
        return float(w @ values / max(w.sum(), 1e-300))

    @cached_property
    def glimpse(self) -> Glimpse:
        rng = np.random.default_rng(0)
        blocks = list(self._blocks_at(rng))
        began = time.perf_counter()
        dense = [self.block(where) for where in blocks]
        took = time.perf_counter() - began
        indices, x, w, lowest = [], [], [], math.inf
        share = GLIMPSED_CELLS / sum(d.n_cells for d in dense)
        for where, d in zip(blocks, dense, strict=True):
            n = max(1, min(d.n_cells, int(share * d.n_cells)))
            cells = np.unravel_index(rng.integers(d.n_cells, size=n), d.shape)
            own = np.ones(n) if d.weights is None else d.weights[cells].astype(np.float64)
            values = d.array[cells].astype(np.float64)
            values[own == 0] = 1.0  # which every loss accepts
            indices.append([c + s.start for c, s in zip(cells, where, strict=True)])
            x.append(values)
            w.append(own)
            if own.any():
                lowest = min(lowest, d.lowest())
        if not any(own.any() for own in w):
            raise InvalidDataError(
                f"None of {GLIMPSED_CELLS:,} random cells of {self.source.title} was observed; "
                "pass the part of it that has data."
            )
        return Glimpse(
            tuple(np.concatenate(column) for column in zip(*indices, strict=True)),
            np.concatenate(x),
            np.concatenate(w),
            lowest,
            took / sum(d.n_cells for d in dense),
        )

    def _blocks_at(self, rng: np.random.Generator) -> Iterator[Where]:
        """A few different blocks at random."""
        grid = tuple(len(e) - 1 for e in self.edges)
        total = math.prod(grid)
        wanted = min(GLIMPSED_BLOCKS, total)
        numbers: set[int] = set()
        while len(numbers) < wanted:
            numbers.add(int(rng.integers(total)))
        for number in sorted(numbers):
            at = np.unravel_index(number, grid)
            yield tuple(
                slice(int(e[k]), int(e[k + 1])) for e, k in zip(self.edges, at, strict=True)
            )

    def fit_needs(self, rank: int, loss: Loss | None = None) -> TiledFitNeeds:
        tiling = self.tiling
        rows = 2 * sum(self.shape) + STEP_PAIRS * tiling.most_rows
        return TiledFitNeeds(
            self.source.title,
            self.shape,
            rank,
            self.n_cells * self.source.dtype.itemsize,
            self.max_memory,
            tiling.cells * self.cell_bytes,
            tiling.count,
            8 * rank * rows,
            self.glimpse.seconds_a_cell * self.n_cells,
        )

    @cached_property
    def tiling(self) -> Tiling:
        most = TILE_SHARE * self.max_memory / self.cell_bytes
        return Tiling.within(self.edges, min(most, self.tile_cells))

    def block(self, where: Where, loss: Loss | None = None) -> Dense:
        """Return the cells of some slices, checked if it is said for which loss."""
        parts = (self.mask, self.weights)
        mask, weights = (None if p is None else np.asarray(p[where]) for p in parts)
        if mask is not None and not mask.any():
            array = np.zeros([s.stop - s.start for s in where], self.source.dtype)
            return Dense(array, np.zeros(array.shape, bool))
        origin = tuple(s.start for s in where)
        return Dense.of_block(self.source.read(where), mask, weights, loss, origin)

    def drawn(self, sizes: Sequence[int], rng: np.random.Generator) -> RowsByMode:
        """Random rows of every mode, so many of each, from as few blocks as hold them."""
        found = []
        for edges, n in zip(self.edges, sizes, strict=True):
            rows = rows_of(edges, some_blocks(edges, n, rng))
            found.append(np.sort(rng.permutation(rows)[:n]))
        return found

    def gathered(
        self,
        rows: Sequence[np.ndarray],
        loss: Loss | None = None,
        watch: Callable[[], object] | None = None,
    ) -> Dense:
        """The cells of some rows of every mode; blocks are read one at a time."""
        shape = tuple(len(r) for r in rows)
        array = np.empty(shape, self.source.dtype.newbyteorder("="))
        weights: np.ndarray | None = None
        touched = [self._touched(mode, r) for mode, r in enumerate(rows)]
        for pieces in itertools.product(*touched):
            if watch is not None:
                watch()
            dense = self.block(tuple(where for where, _, _ in pieces), loss)
            inside = np.ix_(*(own for _, own, _ in pieces))
            target = tuple(place for _, _, place in pieces)
            array[target] = dense.array[inside]
            if dense.weights is not None:
                if weights is None:
                    weights = np.ones(shape, dense.weights.dtype)
                elif weights.dtype != dense.weights.dtype:
                    weights = weights.astype(np.result_type(weights, dense.weights))
                weights[target] = dense.weights[inside]
            elif weights is not None:
                weights[target] = 1
        return Dense(array, weights)

    def tiles(
        self, tiles: Iterator[RowsByMode], loss: Loss, watch: Callable[[], object] | None = None
    ) -> Iterator[tuple[RowsByMode, Dense]]:
        """Tiles one after another, the next one being read while this is worked on; ``watch`` is
        called while they are read, see `gathered`."""
        return prefetched(tiles, lambda rows: self.gathered(rows, loss, watch))

    def all_blocks(self, loss: Loss) -> Iterator[tuple[Where, Dense]]:
        """Every block once, in the order of the array."""
        return prefetched(self.places(), lambda where: self.block(where, loss))

    def places(self) -> Iterator[Where]:
        """Yield the place of every block, in the order of the array."""
        slices = ([slice(int(a), int(b)) for a, b in itertools.pairwise(e)] for e in self.edges)
        return itertools.product(*slices)

    def _touched(self, mode: int, rows: np.ndarray) -> list[tuple[slice, np.ndarray, slice]]:
        """The blocks of a mode that hold some rows, those rows within each, and their places."""
        edges = self.edges[mode]
        ends = np.searchsorted(rows, edges)
        return [
            (slice(int(a), int(b)), rows[i:j] - a, slice(int(i), int(j)))
            for (a, b), (i, j) in zip(
                itertools.pairwise(edges), itertools.pairwise(ends), strict=True
            )
            if j > i
        ]
