"""The cells that figures are taken over: all of them, or all that matter and a sample of the rest.

Dense arrays and small sparse tensors are read whole. Of a large sparse tensor every nonzero is
read, and a sample of its zeros in which each counts for as many as it stands for; nothing of the
size of the tensor is ever made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.model_cells import SLAB_CELLS, slabs, values_at
from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense, SparseStorage, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows, weights_at
from smartcpd._objectives.backgrounds.sampled import weighted_cells
from smartcpd.losses import Domain, Loss

READ_WHOLE = 1 << 22
"""All cells are read up to this many, about a second's work."""
SAMPLE = 1 << 19


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


class Reading:
    """The cells of a storage next to those of a model, given as its factors."""

    def __init__(self, storage: Storage, factors: list[np.ndarray], loss: Loss, seed: int) -> None:
        self.storage = storage
        self.factors = factors
        self.loss = loss
        self.rng = np.random.default_rng(seed)
        self.ones = np.ones(factors[0].shape[1])
        sparse = isinstance(storage, SparseStorage)
        self.only_stored = isinstance(storage, SparseStorage) and storage.absent == "unobserved"
        self.whole = self.only_stored or storage.n_cells <= READ_WHOLE
        self.sampled_cells = 0 if self.whole else SAMPLE if sparse else READ_WHOLE

    def batches(self) -> Iterator[Batch]:
        """Every observed cell that is read, a few at a time."""
        for batch in self._cells():
            yield self._observed(batch) if self.storage.weighted else batch

    def _observed(self, batch: Batch) -> Batch:
        """Leave out missing cells, and give the others their own weights."""
        own = weights_at(self.storage, batch.places)
        seen = own != 0
        places = [index[seen] for index in batch.places]
        weight = batch.weight[seen] * own[seen]
        return Batch(places, batch.x[seen], batch.m[seen], weight, own[seen], batch.sampled)

    def _cells(self) -> Iterator[Batch]:
        storage = self.storage
        if isinstance(storage, SparseStorage):
            if self.only_stored or not self.whole:
                yield from self._stored(storage)
                if not self.only_stored:
                    yield self._zeros(storage)
            else:
                yield from self._all(self._scattered(storage))
        elif self.whole:
            assert isinstance(storage, Dense)
            yield from self._all(np.ascontiguousarray(storage.array).reshape(-1))
        else:
            assert isinstance(storage, Dense)
            yield from self._drawn(storage.array)

    def sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return model values of some observed cells, and weights to estimate sums over all."""
        if self.only_stored:
            index = self._chosen(count)
            weights = np.full(index[0].size, self.storage.nnz / index[0].size)  # type: ignore[attr-defined]
        else:
            cells = weighted_cells(stack(self.factors), self.storage.shape, count, self.rng)
            index, weights = cells.rows(slice(None)), cells.values
        return values_at(self.factors, self.ones, index), weights

    def _chosen(self, count: int) -> list[np.ndarray]:
        """Choose some entries at random."""
        storage = self.storage
        if not isinstance(storage, SparseTensor):
            assert isinstance(storage, SparseStorage)
            return storage.some_events(count, self.rng).rows(slice(None))
        chosen = self.rng.integers(storage.nnz, size=count)
        return [c[chosen].astype(np.intp) for c in storage.indices]

    def _all(self, x: np.ndarray) -> Iterator[Batch]:
        for where, m in slabs(self.factors, cells=SLAB_CELLS >> 2):
            index = np.unravel_index(np.arange(where.start, where.stop), self.storage.shape)
            yield Batch(list(index), x[where].astype(np.float64), m, np.ones(m.size))

    @staticmethod
    def _scattered(storage: Any) -> np.ndarray:
        x = np.zeros(storage.n_cells)
        for index, values in storage.pieces(SLAB_CELLS):
            x[np.ravel_multi_index(index, storage.shape)] = values
        return x

    def _stored(self, storage: Any) -> Iterator[Batch]:
        for index, values in storage.pieces(SLAB_CELLS):
            x = values.astype(np.float64)
            yield Batch(index, x, values_at(self.factors, self.ones, index), np.ones(x.size))

    def _zeros(self, storage: Any) -> Batch:
        cells = weighted_cells(stack(self.factors), storage.shape, SAMPLE, self.rng)
        index = cells.rows(slice(None))
        x = np.empty(SAMPLE)
        storage.read_cells(stacked_rows(storage.shape, index), x)
        empty = x == 0
        index = [i[empty] for i in index]
        m, weight = values_at(self.factors, self.ones, index), cells.values[empty]
        if self.loss.domain is Domain.NONNEGATIVE and not storage.weighted:
            # The model's sum over all zeros is known: a product of column sums, less the nonzeros.
            known = float(np.prod([A.sum(axis=0) for A in self.factors], axis=0).sum())
            known -= sum(float(batch.m.sum()) for batch in self._stored(storage))
            found = float(weight @ m)
            if known > 0 and found > 0:
                weight = weight * (known / found)
        return Batch(index, np.zeros(m.size), m, weight, sampled=True)

    def _drawn(self, array: np.ndarray) -> Iterator[Batch]:
        scale = self.storage.n_cells / READ_WHOLE
        for _ in range(READ_WHOLE // SLAB_CELLS):
            index = [self.rng.integers(size, size=SLAB_CELLS) for size in array.shape]
            x = array[tuple(index)].astype(np.float64)
            m = values_at(self.factors, self.ones, index)
            yield Batch(index, x, m, np.full(m.size, scale), sampled=True)
