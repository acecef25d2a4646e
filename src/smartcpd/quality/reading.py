"""The cells that figures are taken over: all of them, or all that matter and a sample of the rest.

Dense arrays and small sparse tensors are read whole. Of a large sparse tensor every nonzero is
read, and a sample of its zeros in which each counts for as many as it stands for; nothing of the
size of the tensor is ever made.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from smartcpd._common.model_cells import SLAB_CELLS, slabs, values_at
from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense, SparseStorage, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows, weights_at
from smartcpd._objectives.backgrounds.sampled import weighted_cells
from smartcpd.losses import Domain, Loss
from smartcpd.quality.deviance import cell_losses, saturated_losses

READ_WHOLE = 1 << 22
"""Up to this many cells all are read: about a second's work."""
SAMPLE = 1 << 19
OVERVIEW = 1 << 16
"""Cells whose model values tell about which means there are."""


class Batch(NamedTuple):
    """Some cells: where they are, what they hold, their model values, and how many each is."""

    places: list[np.ndarray]
    x: np.ndarray
    m: np.ndarray
    weight: np.ndarray
    own: np.ndarray | None = None
    """How much each counts by itself, which is a part of ``weight``; None if all count the same."""
    sampled: bool = False
    """Whether they were drawn, and stand for others."""


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

    @property
    def freedom(self) -> int:
        """Numbers that the model is free to choose; the scale of a component counts once."""
        return self.ones.size * (sum(self.storage.shape) - len(self.storage.shape) + 1)

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
        values, which = np.unique(batch.x, return_inverse=True)
        least = saturated_losses(loss, values)[which]
        deviance = np.maximum(2.0 * (cell_losses(loss, batch.x, batch.m) - least), 0.0)
        return Judged(batch, self._mean(batch.m), values, which, deviance)

    def _mean(self, m: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(self.loss.mean(m, self.loss.params), dtype=np.float64)

    def batches(self) -> Iterator[Batch]:
        """Every observed cell that is read, a few at a time."""
        for batch in self._cells():
            yield self._observed(batch) if self.storage.weighted else batch

    def _observed(self, batch: Batch) -> Batch:
        """Without missing cells, the others with their own weights."""
        own = weights_at(self.storage, batch.places)
        seen = own != 0
        places = [index[seen] for index in batch.places]
        weight = batch.weight[seen] * own[seen]
        return Batch(places, batch.x[seen], batch.m[seen], weight, own[seen], batch.sampled)

    def _cells(self) -> Iterator[Batch]:
        storage = self.storage
        if isinstance(storage, SparseStorage):
            if self.only_stored or not self.whole:
                expected = 0.0
                for batch in self._stored(storage):
                    expected += float(batch.m.sum())
                    yield batch
                if not self.only_stored:
                    yield self._zeros(storage, expected)
            else:
                yield from self._all(self._scattered(storage))
        elif self.whole:
            assert isinstance(storage, Dense)
            yield from self._all(np.ascontiguousarray(storage.array).reshape(-1))
        else:
            assert isinstance(storage, Dense)
            yield from self._drawn(storage.array)

    def sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Model values of observed cells and weights, with which sums over all are estimated."""
        if self.only_stored:
            index = self._chosen(count)
            weights = np.full(index[0].size, self.storage.nnz / index[0].size)  # type: ignore[attr-defined]
        else:
            cells = weighted_cells(stack(self.factors), self.storage.shape, count, self.rng)
            index, weights = cells.rows(slice(None)), cells.values
        return values_at(self.factors, self.ones, index), weights

    def _chosen(self, count: int) -> list[np.ndarray]:
        """Some entries."""
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

    def _zeros(self, storage: Any, expected: float) -> Batch:
        """A sample of the zeros; ``expected`` is the sum of the model over the other cells."""
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
            known -= expected
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
