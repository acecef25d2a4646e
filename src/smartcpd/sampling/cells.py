"""Cells drawn one by one, as Kolda and Hong's generalised CP decomposition does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from smartcpd.errors import IncompatibleError
from smartcpd.kernels.cells import compiled_place
from smartcpd.stack import offsets
from smartcpd.storage import SparseTensor, Storage

MIN_SAMPLES = 1000
SHARES = 1000
"""Iterations after which, by default, all nonzeros were drawn 3 times, or all cells 10 times."""
WORD = 2.0**32
"""Cells that one random number may tell apart; it has 53 bits, so that the rest keeps them even."""
RUN = 32
"""Cells of an iteration that must share a row of one mode for it to be worth drawing them so."""


class CellDraws(NamedTuple):
    """Cells for many iterations, one iteration after the other.

    Attributes
    ----------
    rows : (N, T * S) uint32
        Their rows in the stacked factors.
    x : (T * S,) float64
        What they hold.
    own_weights : (T * S,) float64, or empty
        How much each of them counts, where that differs.
    """

    rows: np.ndarray
    x: np.ndarray
    own_weights: np.ndarray = np.empty(0)


class CellSampler(Protocol):
    """Draws cells whose weighted sum estimates the sum over all observed cells without bias."""

    @property
    def weights(self) -> np.ndarray:
        """How many cells each of an iteration's stands for."""
        ...

    def draw(self, n_iterations: int, rng: np.random.Generator) -> CellDraws: ...


@dataclass(frozen=True)
class UniformCells:
    """Every cell with the same probability, with replacement."""

    storage: Storage
    n_samples: int

    @classmethod
    def of(cls, storage: Storage, n_samples: int | None = None) -> UniformCells:
        if isinstance(storage, SparseTensor) and storage.absent == "unobserved":
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
        if not self.storage.weighted:
            return CellDraws(rows, x, np.empty(0))
        w = np.empty_like(x)
        self.storage.read_weights(rows, w)
        return CellDraws(rows, _without_missing(x, w), w)


@dataclass(frozen=True)
class StratifiedCells:
    """Nonzeros and zeros apart, each uniformly and with replacement.

    If as many nonzeros are asked for as there are, each is read once. Random cells that turn out
    to be nonzeros are drawn again. Where absent cells are unobserved, no zeros are drawn.
    """

    storage: SparseTensor
    n_nonzeros: int
    n_zeros: int

    @classmethod
    def of(cls, storage: Storage, n_samples: int | None = None) -> StratifiedCells:
        """``n_samples`` counts the nonzeros, and the zeros are as many."""
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
            return CellDraws(rows.reshape(order, -1), x.reshape(-1), np.empty(0))
        w = np.ones_like(x)
        w[:, :cut] = events.weights[positions]
        x = _without_missing(x, w)
        return CellDraws(rows.reshape(order, -1), x.reshape(-1), w.reshape(-1))

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
            # One cell at a time: those of a longer draw are in no random order.
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
    """Values that every loss accepts, whatever is in the place of missing cells."""
    return np.where(w == 0, 1.0, x)


def random_rows(
    shape: tuple[int, ...], n_iterations: int, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Cells drawn uniformly, with replacement.

    Where an iteration has many cells for each row of a mode, it is only drawn how many: cells that
    follow each other then share that row, and the data around it, in the cache.
    """
    dense_enough = [k for k in range(len(shape)) if RUN * shape[k] <= n_samples]
    lead = max(dense_enough, key=lambda k: (shape[k], -k), default=-1)
    if lead >= 0:
        even = np.full(shape[lead], 1 / shape[lead])
        counts = rng.multinomial(n_samples, even, size=n_iterations).reshape(-1)
    else:
        counts = np.empty(0, np.int64)
    words, cells_a_word = _words(shape, lead)
    rows = np.empty((len(shape), n_iterations * n_samples), np.uint32)
    u = rng.random((words.max() + 1, -(-rows.shape[1] // cells_a_word)))
    compiled_place()(u, words, counts, lead, offsets(shape), rows)
    return rows


def _words(shape: tuple[int, ...], lead: int) -> tuple[np.ndarray, int]:
    """Which random number each mode's index is a digit of, and for how many cells one suffices."""
    words = np.zeros(len(shape), np.int64)
    word, cells = 0, 1.0
    for k, size in enumerate(shape):
        if k != lead:
            if cells > 1 and cells * size > WORD:
                word, cells = word + 1, 1.0
            cells *= size
        words[k] = word
    return words, 1 if word else max(1, int(math.log(WORD) / math.log(max(cells, 2.0))))
