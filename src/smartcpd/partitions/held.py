"""Parts that are in memory already: a list of tensors that follow each other along mode 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.conversion import as_sparse
from smartcpd._data.storage.entries import Entries, smallest
from smartcpd._kernels.condensing import condensed
from smartcpd.errors import InvalidDataError
from smartcpd.partitions.figures import Figures
from smartcpd.partitions.tensor import PartitionedTensor


@dataclass(frozen=True, eq=False, repr=False)
class HeldParts(PartitionedTensor):
    """A list of tensors that behaves like a partitioned folder."""

    held: list[Entries] = field(default_factory=list)

    def entries(self, number: int) -> Entries:
        return self.held[number]

    def each_bytes(self) -> Iterator[bytes]:
        for entries in self.held:
            weights = [] if entries.weights is None else [entries.weights]
            for array in (*entries.columns, entries.values, *weights):
                yield from condensed(array)

    @property
    def bytes_on_disk(self) -> int:
        return 0

    @property
    def folder(self) -> None:
        return None

    def n_shards(self, wanted: int) -> int:
        """Each tensor of the list is a shard."""
        return self.n_parts


def held_parts(tensors: Sequence[Any]) -> HeldParts:
    """Make parts of sparse tensors, and of the nonzeros and missing cells of dense arrays."""
    if not tensors:
        raise InvalidDataError("The list for a cluster is empty; give it one tensor or more.")
    storages = [_sparse(as_storage(X)) for X in tensors]
    first = storages[0]
    for number, X in enumerate(storages):
        if X.shape[1:] != first.shape[1:] or X.absent != first.absent:
            raise InvalidDataError(
                f"Tensor {number} of the list has shape {X.shape} and absent={X.absent!r}, the "
                f"first {first.shape} and {first.absent!r}: only mode 0 may differ in length."
            )
    shape = (sum(X.shape[0] for X in storages), *first.shape[1:])
    weighted = any(X.weighted for X in storages)
    dtype = np.result_type(*(X.dtype for X in storages))
    figures = Figures(shape, first.absent, sum(X.n_events for X in storages))
    held, start = [], 0
    for number, X in enumerate(storages):
        if X.n_events == 0:
            raise InvalidDataError(
                f"Tensor {number} of the list has no entries; leave it out, or join it to another."
            )
        events = X.events
        rows = events.indices[0].astype(smallest(shape[0])) + smallest(shape[0]).type(start)
        weights = events.weights
        if weighted and weights is None:
            weights = np.ones(len(events))
        entries = Entries([rows, *events.indices[1:]], events.values.astype(dtype), weights)
        figures.add(f"tensor {number}", start, start + X.shape[0] - 1, entries)
        held.append(entries)
        start += X.shape[0]
    manifest, arrays = figures.summary(mode=0)
    return HeldParts(Path("a list of tensors"), manifest, None, arrays, held=held)


def _sparse(storage: Storage) -> SparseTensor:
    if isinstance(storage, SparseTensor):
        return storage
    if not isinstance(storage, Dense):
        raise InvalidDataError(
            f"A list for a cluster holds sparse tensors and arrays; got {storage!r}. Pass a "
            "partitioned folder by itself."
        )
    return as_sparse(storage)
