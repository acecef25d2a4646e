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

    Parameters
    ----------
    path : Path
        The folder.
    manifest : Manifest
        What the folder says of the tensor and of its parts; `open` reads it.
    max_memory : int, optional
        Bytes that fits may use; half of the memory by default.
    figures : dict of arrays
        Sums over rows and a sample of the entries, which the folder keeps beside the parts.

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
    figures: dict[str, np.ndarray] = field(default_factory=dict)
    reads_here: ClassVar[bool] = True
    """Whether passes need memory for parts in this process."""
    _whole: dict[str, weakref.ref[SparseTensor]] = field(default_factory=dict)
    """The tensor in memory, while somebody has use for it."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PartitionedTensor:
        """Open a folder: read its manifest, but no entries.

        Parameters
        ----------
        path : path
            The folder.

        Returns
        -------
        PartitionedTensor

        Raises
        ------
        DataNotFoundError
            If there is no such folder, or its writing was never finished.
        InvalidDataError
            If the folder is damaged.

        Examples
        --------
        >>> from smartcpd import PartitionedTensor, SparseTensor, write
        >>> write("events.parts", SparseTensor([[0, 1], [1, 0]], [3, 4]))
        >>> PartitionedTensor.open("events.parts")
        PartitionedTensor(2x2, 2 nonzeros in 1 part, int64, 'events.parts')
        """
        folder = Path(path)
        manifest = Manifest.read(folder)
        check_manifest(folder, manifest)
        figures = _arrays(folder / FIGURES)
        check_figures(folder, manifest, figures)
        return cls(folder, manifest, None, figures)

    def labelled(self) -> PartitionedTensor | LabelledTensor:
        """Return the tensor with the names and labels of its modes, if it has any.

        Returns
        -------
        LabelledTensor, or the tensor itself

        Examples
        --------
        >>> from smartcpd import Mode, SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0]], [3, 4])
        >>> modes = [Mode("city", ["Rome", "Oslo"]), Mode("year", [2024, 2025])]
        >>> partitions.write_tensor("events.parts", X, modes).labelled().modes[0]
        Mode('city', 2 labels, category)
        """
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
        """Return the whole tensor in memory if a fit has room for that, else the tensor itself.

        Parameters
        ----------
        max_memory : str, int or None
            What a fit may use, such as "4GB"; by default what the tensor says, or half of the
            memory.

        Returns
        -------
        SparseTensor or PartitionedTensor

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> folder.within("1GB")
        SparseTensor(3x3, 3 nonzeros, 33.3 %, int64)
        >>> folder.within(10)
        PartitionedTensor(3x3, 3 nonzeros in 3 parts, int64, 'events.parts')
        """
        budget = memory.budget(max_memory if max_memory is not None else self.max_memory)
        if self.bytes_of_fit <= budget:
            return self.load()
        return replace(self, max_memory=budget)

    def with_absent(self, absent: str) -> PartitionedTensor:
        """Return the tensor if absent cells have this meaning in it, else raise an error.

        Parameters
        ----------
        absent : {"zero", "unobserved"}
            What a cell that is not stored means; "zero", the default of fits, takes the folder at
            its word.

        Returns
        -------
        PartitionedTensor

        Raises
        ------
        IncompatibleError
            If the folder was written with another meaning, on which its figures depend.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0]], [3, 4], absent="unobserved")
        >>> partitions.write_tensor("events.parts", X).with_absent("unobserved").absent
        'unobserved'
        """
        if absent in ("zero", self.absent):
            return self
        raise IncompatibleError(
            f"{self!r} was written with absent='zero', and its figures depend on that. Write it "
            f"anew from X.load().with_absent({absent!r}), or pass that."
        )

    def load(self) -> SparseTensor:
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
        """Return a method that improves a start where the parts are, if there is one.

        Parameters
        ----------
        problem : Problem
            What is to be fitted.

        Returns
        -------
        Method or None
            None for a folder; on a cluster, updates that workers make on their own.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> folder.local_method(problem=None) is None
        True
        """
        return None

    def fit_needs(self, rank: int, loss: Loss | None = None) -> PartitionedFitNeeds:
        return PartitionedFitNeeds.of(self, rank, loss)

    # What parts are and hold.

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.manifest.parts)

    def row_range(self, number: int) -> RowRange:
        """Return the rows that a part has.

        Parameters
        ----------
        number : int
            The part, counted from 0.

        Returns
        -------
        RowRange
            ``first`` and ``last`` row of the mode that was divided.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> [(folder.row_range(k).first, folder.row_range(k).last) for k in range(folder.n_parts)]
        [(0, 0), (1, 1), (2, 2)]
        """
        part = self.manifest.parts[number]
        return RowRange(self.shape, self.manifest.mode, part.first, part.last)

    def events(self, number: int) -> Events:
        """Return the entries of a part as compiled loops read them.

        Parameters
        ----------
        number : int
            The part, counted from 0.

        Returns
        -------
        Events
            ``indices`` of the divided mode are counted from the first row of the part.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> folder.events(1).indices
        (array([0], dtype=uint8), array([0], dtype=uint8))
        """
        entries = self.entries(number)
        values = entries.values.astype(self.dtype, copy=False)
        return near_events(replace(entries, values=values), self.row_range(number))

    def event_sums(
        self, wanted: EventSum, A: np.ndarray, n_threads: int
    ) -> Iterator[tuple[RowRange, Sum]]:
        """Yield the sum of losses over each part, in order; parts are read ahead of their use.

        Parameters
        ----------
        wanted : EventSum
            Which loss, which part of it, and whether its gradient is wanted.
        A : ndarray
            The factors of all modes, one below the other.
        n_threads : int
            How many threads work on a part.

        Yields
        ------
        rows : RowRange
            The rows of the part.
        sum : Sum
            ``total`` and ``gradient``, for these rows.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import losses
        >>> from smartcpd.partitions.tensor import EventSum
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> wanted = EventSum(losses.get("gaussian"), "whole", want_gradient=False)
        >>> [found.total for rows, found in folder.event_sums(wanted, np.ones((6, 1)), 1)]
        [2.0, 4.5, 8.0]
        """
        for number, events in prefetched(range(self.n_parts), self.events):
            row_range = self.row_range(number)
            yield row_range, wanted.over(events, row_range.take(A), n_threads)

    def sample(self, count: int, rng: np.random.Generator) -> SparseTensor:
        """Return a tensor of so many entries, drawn from all of them; every part is read once.

        Parameters
        ----------
        count : int
            How many entries.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        SparseTensor
            Of the same shape.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> folder.sample(2, np.random.default_rng(0))
        SparseTensor(3x3, 2 nonzeros, 22.2 %, int64)
        """
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
        """Read the entries of a part.

        Parameters
        ----------
        number : int
            The part, counted from 0.

        Returns
        -------
        Entries
            ``columns``, one array of indices a mode, ``values`` and ``weights``.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> folder.entries(1).columns, folder.entries(1).values
        ([array([1], dtype=uint8), array([0], dtype=uint8)], array([4]))
        """
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
        for number in range(self.n_parts):
            yield self.entries(number).values

    def each_bytes(self) -> Iterator[bytes]:
        """Yield the bytes of the parts as they are kept, by which checkpoints know the data again.

        Yields
        ------
        bytes

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> sum(len(piece) for piece in folder.each_bytes()) == folder.bytes_on_disk
        True
        """
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
        """Return into how many shards the parts can be divided among the workers of a cluster.

        Parameters
        ----------
        wanted : int
            How many would be best.

        Returns
        -------
        int
            At most the number of parts.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0], [2, 2]], [3, 4, 5], shape=(3, 3))
        >>> folder = partitions.write_tensor("events.parts", X, part_bytes=1)
        >>> folder.n_shards(2), folder.n_shards(8)
        (2, 3)
        """
        return min(wanted, self.n_parts)

    @property
    def bytes_of_fit(self) -> int:
        """Bytes that a fit of the whole tensor in memory takes for entries."""
        return int(WORKING_COPIES * self.nbytes) + 4 * self.nnz

    # What a storage offers to fits, besides what the manifest says.

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        for here, events, local in self._parts_of(rows):
            found = np.empty(local.shape[1])
            events.read(local, found, significance(self.shape))
            x[here] = found

    def read_weights(self, rows: np.ndarray, w: np.ndarray) -> None:
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
