"""A sparse tensor on disk, of which one part at a time is in memory."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smartcpd._common import memory
from smartcpd._common.hashing import file_bytes
from smartcpd._common.prefetching import prefetched
from smartcpd._common.stacked import offsets
from smartcpd._data.event_sums import Sum, event_sum
from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Mode
from smartcpd._data.storage.entries import Entries, smallest
from smartcpd._data.storage.events import Events, significance
from smartcpd._data.storage.sparse import SparseTensor
from smartcpd.errors import IncompatibleError, InvalidDataError
from smartcpd.losses import Loss
from smartcpd.partitions.checking import check_entries, check_figures, check_manifest
from smartcpd.partitions.described import DescribedStorage
from smartcpd.partitions.fit_needs import PartitionedFitNeeds
from smartcpd.partitions.manifest import FIGURES, LABELS, Manifest
from smartcpd.partitions.parquet import read_entries
from smartcpd.partitions.row_range import RowRange

WORKING_COPIES = 2.2
"""Copies of the entries that a fit in memory holds at its peak: draws of sampled batches, or what
the entries are made from, stand beside them."""


class EventSum(NamedTuple):
    """Which sum over the events of parts is asked for; see `event_sum`."""

    loss: Loss
    part: str
    want_gradient: bool
    convex: bool = False

    def over(self, events: Events, A: np.ndarray, n_threads: int) -> Sum:
        """Return the sum over some events, whose rows have the stacked factors A."""
        loss, part, want_gradient, convex = self
        return event_sum(events, loss, part, A, want_gradient, n_threads, convex=convex)

    def joined(self, sums: Iterable[tuple[RowRange, Sum]], A: np.ndarray) -> Sum:
        """Add up the sums over ranges of rows of what has the stacked factors A."""
        total, G = 0.0, np.zeros_like(A) if self.want_gradient else np.empty(0)
        for row_range, found in sums:
            total += found.total
            if self.want_gradient:
                row_range.add(G, found.gradient)
        return Sum(total, G)


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedTensor(DescribedStorage):
    """A sparse tensor in a folder, its entries in files that each hold some rows of one mode.

    `smartcpd.read` opens it, `smartcpd.write`, ``smartcpd convert`` and `smartcpd.from_table` write
    it. Fits load it whole where it fits in ``max_memory``, and read it part by part where not.

    Examples
    --------
    >>> import smartcpd
    >>> X = smartcpd.SparseTensor([[0, 1], [1, 0]], [3, 4], shape=(2, 2))
    >>> smartcpd.write("events.parts", X)
    >>> smartcpd.read("events.parts").load()
    SparseTensor(2x2, 2 nonzeros, 50 %, int64)
    """

    path: Path
    manifest: Manifest
    max_memory: int | None = None
    """Bytes that fits may use; half of the memory by default."""
    figures: dict[str, np.ndarray] = field(default_factory=dict)
    reads_here: ClassVar[bool] = True
    """Whether passes need memory for parts in this process."""
    _whole: dict[str, weakref.ref[SparseTensor]] = field(default_factory=dict)
    """The tensor in memory, while somebody has use for it."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PartitionedTensor:
        """Open a folder: read its manifest, but no entries."""
        folder = Path(path)
        manifest = Manifest.read(folder)
        check_manifest(folder, manifest)
        figures = _arrays(folder / FIGURES)
        check_figures(folder, manifest, figures)
        return cls(folder, manifest, None, figures)

    def labelled(self) -> PartitionedTensor | LabelledTensor:
        """Return the tensor with the names and labels of its modes, if it has any."""
        names, kinds = self.manifest.names, self.manifest.kinds
        if names is None or kinds is None:
            return self
        labels = _arrays(self.path / LABELS)
        wanted = [f"labels_{n}" for n in range(len(names))]
        if not labels.keys() >= set(wanted):
            raise InvalidDataError(
                f"{self.path / LABELS} has no labels for some modes; write the folder anew."
            )
        modes = tuple(map(Mode, names, [labels[name] for name in wanted], kinds))
        return LabelledTensor(self, modes, self.manifest.notes)

    def within(self, max_memory: str | int | None) -> PartitionedTensor | SparseTensor:
        """Return the whole tensor in memory if a fit of that fits ``max_memory``, else itself."""
        budget = memory.budget(max_memory if max_memory is not None else self.max_memory)
        if self.bytes_of_fit <= budget:
            return self.load()
        return replace(self, max_memory=budget)

    def with_absent(self, absent: str) -> PartitionedTensor:
        """Return the tensor if absent cells have this meaning in it, else raise an error."""
        if absent in ("zero", self.absent):
            return self
        raise IncompatibleError(
            f"{self!r} was written with absent='zero', and its figures depend on that. Write it "
            f"anew from X.load().with_absent({absent!r}), or pass that."
        )

    def load(self) -> SparseTensor:
        """Return the whole tensor in memory."""
        held = self._whole.get("tensor")
        known = None if held is None else held()
        if known is not None:
            return known
        count = self.n_events
        columns = [np.empty(count, smallest(size)) for size in self.shape]
        values = np.empty(count, self.dtype)
        weights = np.empty(count) if self.weighted else None
        done = 0
        for number, part in enumerate(self.manifest.parts):
            entries = self.entries(number)
            where = slice(done, done + part.nnz)
            for column, read in zip(columns, entries.columns, strict=True):
                column[where] = read
            values[where] = entries.values
            if weights is not None:
                weights[where] = entries.weights
            done += part.nnz
        whole = SparseTensor(tuple(columns), values, self.shape, self.absent, weights)
        self._whole["tensor"] = weakref.ref(whole)
        return whole

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        what = "nonzeros" if self.absent == "zero" else "observed"
        return (
            f"PartitionedTensor({shape}, {self.nnz:,} {what} in {self.n_parts} "
            f"part{'s' * (self.n_parts > 1)}, "
            f"{self.dtype}, {str(self.path)!r})"
        )

    def local_method(self, problem: Any) -> Any:
        """Return a method that improves a start where the parts are, if there is one."""
        return None

    def fit_needs(self, rank: int, loss: Loss | None = None) -> PartitionedFitNeeds:
        return PartitionedFitNeeds.of(self, rank, loss)

    # What parts are and hold.

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.manifest.parts)

    def row_range(self, number: int) -> RowRange:
        """The rows that a part has."""
        part = self.manifest.parts[number]
        return RowRange(self.shape, self.manifest.mode, part.first, part.last)

    def events(self, number: int) -> Events:
        """Return the entries of a part as compiled loops read them, counted from its first row."""
        entries = self.entries(number)
        values = entries.values.astype(self.dtype, copy=False)
        return near_events(replace(entries, values=values), self.row_range(number))

    def event_sums(
        self, wanted: EventSum, A: np.ndarray, n_threads: int
    ) -> Iterator[tuple[RowRange, Sum]]:
        """Yield the sum over each part, in order; parts are read ahead of their use."""
        for number, events in prefetched(range(self.n_parts), self.events):
            row_range = self.row_range(number)
            yield row_range, wanted.over(events, row_range.take(A), n_threads)

    def sample(self, count: int, rng: np.random.Generator) -> SparseTensor:
        """Return a tensor of so many entries, drawn from all of them; every part is read once."""
        sizes = np.array([part.nnz for part in self.manifest.parts])
        counts = rng.multivariate_hypergeometric(sizes, min(count, sizes.sum()), method="marginals")
        seeds = rng.integers(2**63, size=self.n_parts)
        drawn = Entries.joined(self._drawn(counts, seeds))
        return SparseTensor(
            tuple(drawn.columns), drawn.values, self.shape, self.absent, drawn.weights
        )

    def _drawn(self, counts: np.ndarray, seeds: np.ndarray) -> list[Entries]:
        """Draw so many entries of each part."""
        found = []
        for number, entries in prefetched(range(self.n_parts), self.entries):
            rng = np.random.default_rng(seeds[number])
            size = entries.values.size
            chosen = rng.choice(size, counts[number], replace=False, shuffle=False)
            found.append(entries.at(np.sort(chosen)))
        return found

    def entries(self, number: int) -> Entries:
        """Return the entries of a part."""
        part = self.manifest.parts[number]
        path = self.path / part.file
        entries = read_entries(path, len(self.shape), self.weighted)
        check_entries(path, self.manifest, part, entries)
        return entries

    def pieces(self, size: int) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
        for _, entries in prefetched(range(self.n_parts), self.entries):
            known = entries
            if entries.weights is not None:
                known = entries.at(entries.weights > 0)
            for start in range(0, known.values.size, size):
                piece = slice(start, start + size)
                index = [c[piece].astype(np.intp) for c in known.columns]
                yield index, known.values[piece]

    def each_values(self) -> Iterator[np.ndarray]:
        """Yield the values of all entries, part by part."""
        for number in range(self.n_parts):
            yield self.entries(number).values

    def each_bytes(self) -> Iterator[bytes]:
        """Yield what the parts are kept as, for a digest: every byte has a part in it."""
        for part in self.manifest.parts:
            yield from file_bytes(self.path / part.file)

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the parts on disk."""
        return sum((self.path / part.file).stat().st_size for part in self.manifest.parts)

    @property
    def folder(self) -> str | None:
        """The folder that others can read the parts from; None if there is none."""
        return str(self.path.resolve())

    def n_shards(self, wanted: int) -> int:
        """Into how many shards the parts can be divided, if so many are wanted."""
        return min(wanted, self.n_parts)

    @property
    def bytes_of_fit(self) -> int:
        """Bytes that a fit of the whole tensor in memory takes for entries."""
        return int(WORKING_COPIES * self.nbytes) + 4 * self.nnz

    # What a storage offers to fits, besides what the manifest says.

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Fill ``x`` with the values of cells; as every part is read, ask for many at a time."""
        for here, events, local in self._parts_of(rows):
            found = np.empty(local.shape[1])
            events.read(local, found, significance(self.shape))
            x[here] = found

    def read_weights(self, rows: np.ndarray, w: np.ndarray) -> None:
        """Fill ``w`` with the weights of single cells; every part is read for it."""
        w[:] = 1.0
        if not self.weighted:
            return
        for here, events, local in self._parts_of(rows):
            found = np.empty(local.shape[1])
            events.excess().read(local, found, significance(self.shape))
            w[here] += found

    def _parts_of(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Events, np.ndarray]]:
        """Yield for each part which cells are its own, its entries, and the cells' rows in it."""
        starts = offsets(self.shape)
        own = rows[self.manifest.mode].astype(np.int64) - starts[self.manifest.mode]
        for number, events in prefetched(range(self.n_parts), self.events):
            row_range = self.row_range(number)
            here = np.flatnonzero((own >= row_range.first) & (own <= row_range.last))
            local = rows[:, here].astype(np.int64) - starts[:-1, None]
            local[row_range.mode] -= row_range.first
            local += offsets(row_range.shape)[:-1, None]
            yield here, events, np.ascontiguousarray(local, np.uint32)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file that belongs to a folder."""
    try:
        with np.load(path, allow_pickle=False) as held:
            return dict(held)
    except Exception as error:  # NumPy lets errors of its parsers through, of many types
        raise InvalidDataError(f"{path} cannot be read ({error}); write the folder anew.") from None


def near_events(entries: Entries, row_range: RowRange) -> Events:
    """The entries of a range of rows as compiled loops read them, counted from its first row."""
    own = entries.columns[row_range.mode]
    near = (own - own.dtype.type(row_range.first)).astype(
        smallest(row_range.last - row_range.first + 1)
    )
    columns = [near if n == row_range.mode else c for n, c in enumerate(entries.columns)]
    return Events(tuple(columns), entries.values, row_range.shape, entries.weights)
