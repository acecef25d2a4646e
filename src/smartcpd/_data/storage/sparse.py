"""A sparse tensor: the cells that are not zero, or the cells that were observed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd._common.doors import doors
from smartcpd._data.storage.base import SparseStorage, random_cells
from smartcpd._data.storage.entries import (
    canonical,
    checked_columns,
    checked_shape,
    checked_values,
    checked_weights,
    without_missing,
)
from smartcpd._data.storage.events import Events
from smartcpd._data.storage.fiber_index import FiberIndex, build_fiber_indices
from smartcpd._data.storage.foreign import coordinates
from smartcpd._data.storage.summed_up import PIECE, SummedUp
from smartcpd._kernels.compiling import Block
from smartcpd._kernels.fibers import sparse_gather
from smartcpd.errors import InvalidDataError, InvalidParameterError

ABSENT = ("zero", "unobserved")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SparseTensor(SummedUp):
    """A tensor of which only some cells are stored.

    Entries may come in any order; those of one cell are added up. They are kept sorted, the longest
    mode first, indices in the smallest integers that fit, values in their own dtype.

    Parameters
    ----------
    indices : (K x N) integer array, or tuple of N integer arrays of length K
        The cells, counted from 0.
    values : array of length K, or a number
        What they hold; one number holds for all of them.
    shape : tuple of int, optional
        By default just large enough for the indices.
    absent : {"zero", "unobserved"}
        What a cell that is not stored means: that nothing happened there, or that nobody looked.
        Stored zeros are dropped in the first case and are observations in the second.
    weights : array of length K, optional
        How much each entry counts, 1 by default, as cells that are not stored do; an entry of
        weight 0 is missing. With weights every cell may be given once only.
    missing : (K x N) integer array, tuple of N arrays, SparseTensor or SciPy sparse array, optional
        Cells that nobody looked at, stored or not: of a sparse tensor, those that it stores.

    Examples
    --------
    >>> from smartcpd import SparseTensor
    >>> X = SparseTensor([[0, 0, 1], [2, 1, 0], [0, 0, 1]], [1, 5, 1], shape=(3, 2, 2))
    >>> X
    SparseTensor(3x2x2, 2 nonzeros, 16.7 %, int64)
    """

    indices: tuple[np.ndarray, ...]
    values: np.ndarray
    shape: tuple[int, ...]
    absent: str
    weights: np.ndarray | None
    missing: tuple[np.ndarray, ...]
    events: Events
    """The cells that compiled loops read: the entries and, with weight 0, the missing cells among
    zeros.
    """

    def __init__(
        self,
        indices: Any,
        values: Any = 1,
        shape: Sequence[int] | None = None,
        absent: str = "zero",
        weights: Any = None,
        missing: Any = None,
    ) -> None:
        if absent not in ABSENT:
            raise InvalidParameterError(f"absent must be 'zero' or 'unobserved'; got {absent!r}.")
        columns = checked_columns(indices)
        numbers = checked_values(values, columns[0].size)
        sizes = checked_shape(columns, shape)
        own = checked_weights(weights, numbers.size)
        unseen = _cells_of(missing, sizes)
        entries = canonical(columns, numbers, own, sizes, keep_zeros=absent == "unobserved")
        stored, unseen, events = without_missing(entries, unseen, sizes, absent == "zero")
        for array in (*stored.columns, stored.values, *events.indices, events.values):
            array.flags.writeable = False
        for name, value in (
            ("indices", tuple(stored.columns)),
            ("values", stored.values),
            ("shape", sizes),
            ("absent", absent),
            ("weights", stored.weights),
            ("missing", tuple(unseen)),
            ("events", events),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, X: Any, absent: str = "zero") -> SparseTensor:
        """Make a sparse tensor of a sparse array of another package: SciPy, pydata or pyttb.

        Parameters
        ----------
        X : SparseTensor, SciPy sparse array, pydata ``sparse`` array or pyttb sptensor
            The array; its cells that are not stored must be 0.
        absent : {"zero", "unobserved"}
            What a cell that is not stored means.

        Returns
        -------
        SparseTensor

        Examples
        --------
        >>> import scipy.sparse
        >>> from smartcpd import SparseTensor
        >>> SparseTensor.of(scipy.sparse.csr_array([[0, 2], [0, 0]]))
        SparseTensor(2x2, 1 nonzeros, 25 %, int64)
        """
        if isinstance(X, SparseTensor):
            return X if absent in ("zero", X.absent) else X.with_absent(absent)
        if isinstance(X, SparseStorage):
            return cls.of(X.load(), absent)
        columns, values, shape = coordinates(X)
        return cls(columns, values, shape, absent)

    def with_absent(self, absent: str) -> SparseTensor:
        """Return the same entries with another meaning of the cells that are not stored.

        Parameters
        ----------
        absent : {"zero", "unobserved"}
            The meaning of the cells that are not stored.

        Returns
        -------
        SparseTensor

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> SparseTensor([[0, 0], [1, 1]], [3, 4], shape=(2, 2)).with_absent("unobserved")
        SparseTensor(2x2, 2 observed, 50 %, int64)
        """
        return SparseTensor(
            self.indices, self.values, self.shape, absent, self.weights, self.missing
        )

    def with_missing(self, cells: Any) -> SparseTensor:
        """Return the same tensor with more cells that nobody looked at, given as ``missing`` is.

        Parameters
        ----------
        cells : (K x N) integer array, tuple of N arrays, SparseTensor or SciPy sparse array
            The cells.

        Returns
        -------
        SparseTensor

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> SparseTensor([[0, 0], [1, 1]], [3, 4], shape=(2, 2)).with_missing([[0, 1]])
        SparseTensor(2x2, 2 nonzeros, 50 %, 1 missing, int64)
        """
        more = _cells_of(cells, self.shape)
        both = [np.concatenate(pair) for pair in zip(self.missing, more, strict=True)]
        return SparseTensor(
            self.indices, self.values, self.shape, self.absent, self.weights, tuple(both)
        )

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        what = "nonzeros" if self.absent == "zero" else "observed"
        share = 100 * self.nnz / self.n_cells
        missing = f", {self.n_missing:,} missing" if self.n_missing else ""
        weighted = ", weighted" if self.weights is not None else ""
        return (
            f"SparseTensor({shape}, {self.nnz:,} {what}, {share:.3g} %{missing}{weighted}, "
            f"{self.values.dtype})"
        )

    def _repr_html_(self) -> str:
        return doors.shown_in_notebook(self)

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def n_events(self) -> int:
        return len(self.events)

    @property
    def nbytes(self) -> int:
        """Bytes that the entries take in memory."""
        return self.values.nbytes + sum(c.nbytes for c in self.indices)

    @cached_property
    def fiber_indices(self) -> tuple[FiberIndex, ...]:
        """For each mode, the fibers that are not empty. Built once, when first asked for."""
        return build_fiber_indices(self.events.indices, self.shape)

    def load(self) -> SparseTensor:
        return self

    def to_dense(self, max_bytes: float = 1e9) -> np.ndarray:
        """Return all cells as a NumPy array; an array larger than ``max_bytes`` is refused.

        Parameters
        ----------
        max_bytes : float
            A larger array is refused.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> SparseTensor([[0, 0], [1, 1]], [3, 4], shape=(2, 2)).to_dense()
        array([[3, 0],
               [0, 4]])
        """
        size = self.n_cells * self.values.itemsize
        if self.n_missing:
            raise InvalidDataError(
                f"A dense array has no place for the {self.n_missing:,} missing cells of {self!r}. "
                "Pass it as it is."
            )
        if self.absent == "unobserved":
            raise InvalidDataError(
                "A dense array has no place for unobserved cells. "
                "If they are zeros, use X.with_absent('zero').to_dense()."
            )
        if size > max_bytes:
            raise InvalidParameterError(
                f"The dense array of {self!r} needs {size:,} bytes ({size / 1e9:,.1f} GB), more "
                f"than max_bytes={max_bytes:,.0f}. Pass a larger max_bytes if that is what you "
                "want."
            )
        return self.filled(0)

    def filled(self, value: float) -> np.ndarray:
        """Return all cells as a NumPy array, with ``value`` in those that are not stored.

        Parameters
        ----------
        value : float
            What stands in the cells that are not stored.

        Returns
        -------
        ndarray
            In the dtype of the values.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2), absent="unobserved")
        >>> X.filled(-1)
        array([[ 3, -1],
               [-1,  5]])
        """
        out = np.full(self.shape, value, self.values.dtype)
        out[self.indices] = self.values
        return out

    # What a storage offers to fits.

    def handle(self) -> np.ndarray:
        """Return the addresses by which compiled code reads the data.

        The tensor must stay alive while compiled code uses them.

        Returns
        -------
        array of int64
            For the entries and for each mode's index of fibers, as `gather_block` reads them.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> X.handle().dtype
        dtype('int64')
        """
        return np.concatenate(
            [self.events.handle(), *(index.handle() for index in self.fiber_indices)]
        )

    def gather_block(self, dtype: str) -> Block:
        """Return the compiled function that fills an array with rows of chosen fibers.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the array that is filled.

        Returns
        -------
        Block
            A function of (handle, fibers, mode, first row, out). A fiber is named by an index in
            every mode, of which that in ``mode`` is ignored.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> columns, out = np.array([[0, 0], [0, 1]]), np.empty((2, 2))
        >>> X.gather_block("float64")(X.handle(), columns, 0, 0, out)
        >>> out
        array([[3., 0.],
               [0., 5.]])
        """
        return sparse_gather(self.values.dtype.name, dtype)

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        self.events.read(rows, x)

    def weights_handle(self) -> np.ndarray:
        """Return the addresses by which compiled code reads the weights.

        Returns
        -------
        array of int64
            As `handle`, for `weigh_block`; empty if all cells count the same.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> X.weights_handle().size
        0
        """
        if self.events.weights is None:
            return np.empty(0, np.int64)
        handle = self.handle()
        handle[0] = self.events.weights.__array_interface__["data"][0]
        return handle

    def weigh_block(self, dtype: str) -> Block:
        """Return the compiled function that reads weights; cells that are not stored count 1.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            The type of the array that is filled.

        Returns
        -------
        Block
            A function as of `gather_block`, for `weights_handle`.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2), missing=[[0, 1]])
        >>> columns, out = np.array([[0, 0], [0, 1]]), np.empty((2, 2))
        >>> X.weigh_block("float64")(X.weights_handle(), columns, 0, 0, out)
        >>> out
        array([[1., 0.],
               [1., 1.]])
        """
        return sparse_gather("float64", dtype, fill=1)

    def read_weights(self, rows: np.ndarray, w: np.ndarray) -> None:
        if self.events.weights is None:
            w[:] = 1.0
        else:
            self._excess.read(rows, w)
            w += 1.0

    @cached_property
    def _excess(self) -> Events:
        return self.events.excess()

    def pieces(self, size: int) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
        for start in range(0, self.nnz, size):
            piece = slice(start, start + size)
            yield [c[piece].astype(np.intp) for c in self.indices], self.values[piece]

    def each_values(self) -> Iterator[np.ndarray]:
        for start in range(0, self.nnz, PIECE):
            yield self.values[start : start + PIECE]

    def weighted_values(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield the values of all entries, and how much each of them counts.

        Yields
        ------
        values : array
            What the cells hold.
        weights : array or None
            None where all count the same.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2), weights=[1.0, 0.5])
        >>> [(values.tolist(), weights.tolist()) for values, weights in X.weighted_values()]
        [([3, 5], [1.0, 0.5])]
        """
        yield self.values, self.weights

    def some_cells(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return all cells, or so many at random if there are more.

        They are among those that are stored where the others were not observed.

        Parameters
        ----------
        count : int
            How many at most.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        tuple of integer arrays, one a mode

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> X.some_cells(10, np.random.default_rng(0))
        (array([0, 0, 1, 1]), array([0, 1, 0, 1]))
        """
        if self.absent == "zero":
            return random_cells(self.shape, count, rng)
        chosen = rng.permutation(self.nnz)[:count]
        return tuple(column[chosen].astype(np.intp) for column in self.indices)

    def some_entries(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        chosen = rng.integers(self.nnz, size=count)
        return [column[chosen].astype(np.intp) for column in self.indices]

    def some_events(self, count: int, rng: np.random.Generator) -> Events:
        n = self.n_events
        return self.events.at(np.arange(n) if n <= count else rng.integers(n, size=count))


def _cells_of(cells: Any, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return one array of indices a mode, of cells given in any of the ways that `SparseTensor`
    knows.
    """
    if cells is None:
        return [np.empty(0, np.int64) for _ in shape]
    if hasattr(cells, "tocoo"):
        cells = SparseTensor.of(cells)
    if isinstance(cells, SparseTensor):
        if cells.shape != shape:
            raise InvalidDataError(
                f"missing has shape {cells.shape}, the tensor {shape}; they must be the same."
            )
        cells = cells.indices
    if len(cells) == 0:
        return [np.empty(0, np.int64) for _ in shape]
    columns = checked_columns(cells)
    checked_shape(columns, shape)
    return columns
