"""The cells that figures are taken over: all of them, or all that matter and a sample of the rest.

Dense arrays and small sparse tensors are read whole. Of a large sparse tensor every nonzero is
read, and a sample of its zeros in which each counts for as many as it stands for; nothing of the
size of the tensor is ever made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np

from smartcpd._common.distinct import distinct
from smartcpd._common.factors import count_free
from smartcpd._common.model_cells import SLAB_CELLS, slabs, values_at
from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows, weights_at
from smartcpd._objectives.backgrounds.sampled import weighted_cells
from smartcpd.losses import Domain, Loss
from smartcpd.partitions.tensor import PartitionedTensor

READ_WHOLE = 1 << 22
"""All cells are read up to this many, about a second's work."""
SAMPLE = 1 << 19
OVERVIEW = 1 << 16
"""Cells whose model values tell about which means there are."""


class Batch(NamedTuple):
    """Some cells: their places, values and model values, and how many each stands for."""

    places: list[np.ndarray]
    x: np.ndarray
    m: np.ndarray
    weight: np.ndarray
    own: np.ndarray | None = None
    """How much each cell counts by itself, which is a part of ``weight``; None if all count the
    same.
    """
    sampled: bool = False
    """Whether the cells were drawn at random, and stand for others."""


class Judged(NamedTuple):
    """Some cells, and what the loss says of each, not weighted."""

    batch: Batch
    mean: np.ndarray
    """What the model expects of them."""
    values: np.ndarray
    """The different values that they hold, ..."""
    which: np.ndarray
    """... and which of these each cell holds."""
    deviance: np.ndarray


class Tally(Protocol):
    """Sums over the cells, which come a few at a time."""

    def add(self, cells: Judged) -> None: ...


class Reading:
    """The cells of a storage next to those of a model, given as its factors."""

    n_zeros: int | None = None
    """How many zeros there are, where it is known although only a sample of them is read."""

    def __init__(self, storage: Any, factors: list[np.ndarray], loss: Loss, seed: int) -> None:
        self.storage = storage
        self.factors = factors
        self.loss = loss
        self.rng = np.random.default_rng(seed)
        self.ones = np.ones(factors[0].shape[1])

    @property
    def whole(self) -> bool:
        """Whether every observed cell is read."""
        return bool(self.storage.n_cells <= READ_WHOLE)

    @property
    def sampled_cells(self) -> int:
        """How many cells are drawn to stand for others."""
        raise NotImplementedError

    @property
    def samples_all(self) -> bool:
        """Whether every cell that is read stands for others, so that sums are those of a sample."""
        return False

    @property
    def freedom(self) -> int:
        """Numbers that the model is free to choose; the scale of a component counts once."""
        return count_free(self.factors)

    def show_to(self, *tallies: Tally) -> None:
        """Go through the cells once, and show them to everyone who sums something up."""
        _ = self.overview  # drawn first, so that the cells do not depend on who looks at them
        with np.errstate(over="ignore", invalid="ignore"):  # a diverged model is a case, too
            for batch in self.batches():
                if batch.x.size:
                    cells = self._judged(batch)
                    for tally in tallies:
                        tally.add(cells)

    @cached_property
    def overview(self) -> tuple[np.ndarray, np.ndarray]:
        """What the model expects of a sample of the cells, and their weights as in `sample`."""
        m, weights = self.sample(OVERVIEW)
        return self._mean(m), weights

    def _judged(self, batch: Batch) -> Judged:
        loss = self.loss
        values, which = distinct(batch.x)
        least = loss.saturated(values)[which]
        deviance = np.maximum(2.0 * (loss.values_at(batch.x, batch.m) - least), 0.0)
        return Judged(batch, self._mean(batch.m), values, which, deviance)

    def _mean(self, m: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(self.loss.mean(m, self.loss.params), dtype=np.float64)

    def batches(self) -> Iterator[Batch]:
        """Every observed cell that is read, a few at a time."""
        for batch in self._cells():
            yield self._observed(batch) if self.storage.weighted else batch

    def sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Model values of observed cells and weights, with which sums over all are estimated."""
        cells = weighted_cells(stack(self.factors), self.storage.shape, count, self.rng)
        return self._model(cells.rows(slice(None))), cells.values

    def _cells(self) -> Iterator[Batch]:
        """The cells that are read, missing ones among them."""
        raise NotImplementedError

    def _observed(self, batch: Batch) -> Batch:
        """Leave out missing cells, and give the others their own weights."""
        own = weights_at(self.storage, batch.places)
        seen = own != 0
        places = [index[seen] for index in batch.places]
        weight = batch.weight[seen] * own[seen]
        return Batch(places, batch.x[seen], batch.m[seen], weight, own[seen], batch.sampled)

    def _model(self, places: Sequence[np.ndarray]) -> np.ndarray:
        return values_at(self.factors, self.ones, places)

    def _all(self, x: np.ndarray) -> Iterator[Batch]:
        """All cells, whose values are in the order of the array."""
        for where, m in slabs(self.factors, cells=SLAB_CELLS >> 2):
            index = np.unravel_index(np.arange(where.start, where.stop), self.storage.shape)
            yield Batch(list(index), x[where].astype(np.float64), m, np.ones(m.size))


class DenseReading(Reading):
    """Every cell of an array, or a sample of them if there are many."""

    storage: Dense

    @property
    def sampled_cells(self) -> int:
        return 0 if self.whole else READ_WHOLE

    @property
    def samples_all(self) -> bool:
        return not self.whole

    def _cells(self) -> Iterator[Batch]:
        array = self.storage.array
        if self.whole:
            yield from self._all(np.ascontiguousarray(array).reshape(-1))
            return
        scale = self.storage.n_cells / READ_WHOLE
        for _ in range(READ_WHOLE // SLAB_CELLS):
            index = [self.rng.integers(size, size=SLAB_CELLS) for size in array.shape]
            x, m = array[tuple(index)].astype(np.float64), self._model(index)
            yield Batch(index, x, m, np.full(m.size, scale), sampled=True)


class SparseReading(Reading):
    """Every nonzero of a sparse tensor, and its zeros: all, or a sample if there are many."""

    storage: SparseTensor | PartitionedTensor

    def __init__(self, storage: Any, factors: list[np.ndarray], loss: Loss, seed: int) -> None:
        super().__init__(storage, factors, loss, seed)
        if not self.whole and not storage.weighted:
            self.n_zeros = storage.n_cells - storage.nnz

    @property
    def sampled_cells(self) -> int:
        return 0 if self.whole else SAMPLE

    def _cells(self) -> Iterator[Batch]:
        if self.whole:
            yield from self._all(self._scattered())
        else:
            expected = 0.0
            for batch in self._stored():
                expected += float(batch.m.sum())
                yield batch
            yield self._zeros(expected)

    def _scattered(self) -> np.ndarray:
        x = np.zeros(self.storage.n_cells)
        for index, values in self.storage.pieces(SLAB_CELLS):
            x[np.ravel_multi_index(index, self.storage.shape)] = values
        return x

    def _stored(self) -> Iterator[Batch]:
        for index, values in self.storage.pieces(SLAB_CELLS):
            x = values.astype(np.float64)
            yield Batch(index, x, self._model(index), np.ones(x.size))

    def _zeros(self, expected: float) -> Batch:
        """Draw a sample of the zeros; ``expected`` is the sum of the model over other cells."""
        storage = self.storage
        cells = weighted_cells(stack(self.factors), storage.shape, SAMPLE, self.rng)
        index = cells.rows(slice(None))
        x = np.empty(SAMPLE)
        storage.read_cells(stacked_rows(storage.shape, index), x)
        empty = x == 0
        index = [i[empty] for i in index]
        m, weight = self._model(index), cells.values[empty]
        if self.loss.domain is Domain.NONNEGATIVE and not storage.weighted:
            # The model's sum over all zeros is known: a product of column sums, less the nonzeros.
            known = float(np.prod([A.sum(axis=0) for A in self.factors], axis=0).sum())
            known -= expected
            found = float(weight @ m)
            if known > 0 and found > 0:
                weight = weight * (known / found)
        return Batch(index, np.zeros(m.size), m, weight, sampled=True)


class StoredReading(SparseReading):
    """Every stored cell of a sparse tensor whose other cells were not observed."""

    @property
    def whole(self) -> bool:
        return True

    def sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        index = self.storage.some_entries(count, self.rng)
        return self._model(index), np.full(index[0].size, self.storage.nnz / index[0].size)

    def _cells(self) -> Iterator[Batch]:
        return self._stored()


@singledispatch
def reading_of(storage: Storage, factors: list[np.ndarray], loss: Loss, seed: int) -> Reading:
    """The cells of a storage next to those of a model; each kind of storage is read in its way."""
    raise TypeError(f"{type(storage).__name__} is no storage that can be read cell by cell.")


@reading_of.register
def _(storage: Dense, factors: list[np.ndarray], loss: Loss, seed: int) -> Reading:
    return DenseReading(storage, factors, loss, seed)


@reading_of.register(SparseTensor)
@reading_of.register(PartitionedTensor)
def _(
    storage: SparseTensor | PartitionedTensor, factors: list[np.ndarray], loss: Loss, seed: int
) -> Reading:
    kind = SparseReading if storage.absent == "zero" else StoredReading
    return kind(storage, factors, loss, seed)
