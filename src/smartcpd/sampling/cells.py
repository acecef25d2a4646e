"""Cells drawn one by one, as Kolda and Hong's generalised CP decomposition does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage import InMemory, SparseTensor, Storage
from smartcpd._kernels.cells import compiled_place
from smartcpd.errors import IncompatibleError

MIN_SAMPLES = 1000
SHARES = 1000
"""Number of iterations that, by default, draw all nonzeros 3 times, or all cells 10 times."""
WORD = 2.0**43
"""Number of cells that one random number of 64 bits may tell apart without a noticeable bias."""
RUN = 8
"""Cells of an iteration that must share a row of one mode for it to be worth sorting them."""


class CellDraws(NamedTuple):
    """S cells for each of T iterations, one iteration after the other.

    Attributes
    ----------
    rows : (N, T * S) uint32
        The rows of the cells in the stacked factors, one for each of the N modes.
    x : (T * S,) float64
        The values of the cells.
    lead : int
        The mode whose row is most often the same in consecutive cells.
    own_weights : (T * S,) float64, or empty
        How much each cell counts, where that differs between cells.
    """

    rows: np.ndarray
    x: np.ndarray
    lead: int = 0
    own_weights: np.ndarray = np.empty(0)


class CellSampler(Protocol):
    """Draws cells whose weighted sum estimates the sum over all observed cells without bias."""

    @property
    def weights(self) -> np.ndarray:
        """The number of cells that each of the S cells of an iteration stands for."""
        ...

    def draw(self, n_iterations: int, rng: np.random.Generator) -> CellDraws: ...


@dataclass(frozen=True)
class UniformCells:
    """Draws every cell with the same probability, with replacement."""

    storage: InMemory
    n_samples: int

    @classmethod
    def of(cls, storage: InMemory, n_samples: int | None = None) -> UniformCells:
        """Return a sampler whose default size reads all cells 10 times in 1000 iterations."""
        if storage.absent == "unobserved":
            raise IncompatibleError(
                f"Uniform cells would be unobserved ones, too, of {storage!r}. Draw nonzeros only: "
                "use StratifiedCells."
            )
        if n_samples is None:
            share = -(-10 * storage.n_cells // SHARES)
            n_samples = min(max(MIN_SAMPLES, share), storage.n_cells)
        return cls(storage, n_samples)

    @cached_property
    def weights(self) -> np.ndarray:
        return np.full(self.n_samples, self.storage.n_cells / self.n_samples)

    def draw(self, n_iterations: int, rng: np.random.Generator) -> CellDraws:
        rows = random_rows(self.storage.shape, n_iterations, self.n_samples, rng)
        x = np.empty(rows.shape[1])
        self.storage.read_cells(rows, x)
        lead = max(0, lead_mode(self.storage.shape, self.n_samples))
        if not self.storage.weighted:
            return CellDraws(rows, x, lead)
        w = np.empty_like(x)
        self.storage.read_weights(rows, w)
        return CellDraws(rows, _without_missing(x, w), lead, w)


@dataclass(frozen=True)
class StratifiedCells:
    """Draws nonzeros and zeros separately, each uniformly and with replacement.

    If as many nonzeros are asked for as there are, each is read once. Random cells that turn out to
    be nonzeros are drawn again. Where absent cells are unobserved, no zeros are drawn.
    """

    storage: SparseTensor
    n_nonzeros: int
    n_zeros: int

    @classmethod
    def of(cls, storage: Storage, n_samples: int | None = None) -> StratifiedCells:
        """Return a sampler of ``n_samples`` nonzeros, and of as many zeros."""
        if not isinstance(storage, SparseTensor):
            raise IncompatibleError(
                "Stratified cells need to know the nonzeros, and X is dense. Use UniformCells, or "
                "pass X as a SparseTensor."
            )
        nnz = len(storage.events)
        zeros = storage.n_cells - nnz if storage.absent == "zero" else 0
        if n_samples is None:
            n_samples = min(max(MIN_SAMPLES, -(-3 * nnz // SHARES)), nnz or MIN_SAMPLES)
        return cls(storage, n_samples if nnz else 0, min(n_samples, zeros))

    @cached_property
    def weights(self) -> np.ndarray:
        nnz = len(self.storage.events)
        strata = ((nnz, self.n_nonzeros), (self.storage.n_cells - nnz, self.n_zeros))
        return np.concatenate([np.full(drawn, size / max(drawn, 1)) for size, drawn in strata])

    def draw(self, n_iterations: int, rng: np.random.Generator) -> CellDraws:
        order = len(self.storage.shape)
        n_samples = self.n_nonzeros + self.n_zeros
        rows = np.empty((order, n_iterations, n_samples), np.uint32)
        x = np.zeros((n_iterations, n_samples))
        cut = self.n_nonzeros
        positions = self._positions(n_iterations, rng)
        events = self.storage.events
        x[:, :cut] = events.values[positions]
        for k, (column, first) in enumerate(
            zip(events.indices, offsets(self.storage.shape)[:-1], strict=True)
        ):
            rows[k, :, :cut] = column[positions] + np.uint32(first)
        zeros = self._zeros(n_iterations * self.n_zeros, rng)
        rows[:, :, cut:] = zeros.reshape(order, n_iterations, self.n_zeros)
        if events.weights is None:
            return CellDraws(rows.reshape(order, -1), x.reshape(-1))
        w = np.ones_like(x)
        w[:, :cut] = events.weights[positions]
        x = _without_missing(x, w)
        return CellDraws(rows.reshape(order, -1), x.reshape(-1), own_weights=w.reshape(-1))

    def _positions(self, n_iterations: int, rng: np.random.Generator) -> np.ndarray:
        nnz = len(self.storage.events)
        if self.n_nonzeros == nnz:
            return np.broadcast_to(np.arange(nnz), (n_iterations, nnz))
        return rng.integers(nnz, size=(n_iterations, self.n_nonzeros))

    def _zeros(self, wanted: int, rng: np.random.Generator) -> np.ndarray:
        storage = self.storage
        found = np.empty((len(storage.shape), 0), np.uint32)
        share = 1 - len(storage.events) / storage.n_cells
        while found.shape[1] < wanted:
            missing = wanted - found.shape[1]
            # Drawn one cell at a time, because a draw of several cells may be sorted by one mode.
            candidates = random_rows(storage.shape, int(1.1 * missing / share) + 1, 1, rng)
            x = np.empty(candidates.shape[1])
            storage.read_cells(candidates, x)
            plain = x == 0
            if storage.weighted:
                # Missing cells, and zeros with a weight of their own, are among the events.
                storage.read_weights(candidates, x)
                plain &= x == 1
            found = np.concatenate([found, candidates[:, plain]], axis=1)
        return found[:, :wanted]


def _without_missing(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Replace the values of missing cells by 1, which every loss accepts."""
    return np.where(w == 0, 1.0, x)


def random_rows(
    shape: tuple[int, ...], n_iterations: int, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw cells uniformly, with replacement.

    Where an iteration has many cells for each row of a mode, they are sorted by it: cells that
    follow each other then share that row, and the data around it, in the cache. As indices of
    different modes are independent, one mode's can be sorted without the others'.
    """
    rows = np.empty((len(shape), n_iterations * n_samples), np.uint32)
    key = rng.integers(1 << 64, dtype=np.uint64)
    compiled_place()(
        key, _words(shape), n_samples, lead_mode(shape, n_samples), offsets(shape), rows
    )
    return rows


def lead_mode(shape: tuple[int, ...], n_samples: int) -> int:
    """Return the mode that cells are sorted by; -1 if sorting is not worth it."""
    dense_enough = [k for k in range(len(shape)) if RUN * shape[k] <= n_samples]
    return max(dense_enough, key=lambda k: (shape[k], -k), default=-1)


def _words(shape: tuple[int, ...]) -> np.ndarray:
    """Say in which modes a new random number begins, whose digits make the indices."""
    begins = np.zeros(len(shape), np.bool_)
    cells = math.inf
    for k, size in enumerate(shape):
        begins[k] = cells * size > WORD
        cells = size if begins[k] else cells * size
    return begins
