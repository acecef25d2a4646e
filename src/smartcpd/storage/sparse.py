"""A sparse tensor: the cells that are not zero, or the cells that were observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError
from smartcpd.kernels import sorting
from smartcpd.kernels.cells import sparse_cells
from smartcpd.kernels.compiling import Block
from smartcpd.kernels.fibers import sparse_gather
from smartcpd.losses import Data, Loss
from smartcpd.stack import offsets
from smartcpd.storage.events import Events
from smartcpd.storage.fiber_index import FiberIndex, build_fiber_indices

ABSENT = ("zero", "unobserved")
MAX_ROWS = 2**32
PIECE = 1 << 20


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SparseTensor:
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

    def __init__(
        self,
        indices: Any,
        values: Any = 1,
        shape: Sequence[int] | None = None,
        absent: str = "zero",
    ) -> None:
        if absent not in ABSENT:
            raise InvalidParameterError(f"absent must be 'zero' or 'unobserved'; got {absent!r}.")
        columns = _checked_columns(indices)
        numbers = _checked_values(values, columns[0].size)
        sizes = _checked_shape(columns, shape)
        columns = [c.astype(_smallest(size)) for c, size in zip(columns, sizes, strict=True)]
        columns, numbers = _canonical(columns, numbers, sizes, keep_zeros=absent == "unobserved")
        for array in (*columns, numbers):
            array.flags.writeable = False
        for name, value in (
            ("indices", tuple(columns)),
            ("values", numbers),
            ("shape", sizes),
            ("absent", absent),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, X: Any, absent: str = "zero") -> SparseTensor:
        """From a SciPy sparse array of any order, a pydata ``sparse`` array or a pyttb sptensor."""
        if isinstance(X, SparseTensor):
            return X if absent in ("zero", X.absent) else X.with_absent(absent)
        if type(X).__module__.startswith("pyttb"):
            # An sptensor keeps its values as a column; one without nonzeros has no columns at all.
            subs = np.asarray(X.subs).reshape(-1, len(X.shape))
            return cls(subs, np.asarray(X.vals).reshape(-1), X.shape, absent)
        coo = X.tocoo() if hasattr(X, "tocoo") else X
        coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
        if np.any(getattr(coo, "fill_value", 0) != 0):
            raise InvalidDataError(
                f"X has fill_value={coo.fill_value!r}; cells that are not stored must be 0. "
                "Subtract it first, or pass X.todense()."
            )
        return cls(tuple(coords), coo.data, coo.shape, absent)

    def with_absent(self, absent: str) -> SparseTensor:
        """The same entries with another meaning of the cells that are not stored."""
        return SparseTensor(self.indices, self.values, self.shape, absent)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        what = "nonzeros" if self.absent == "zero" else "observed"
        share = 100 * self.nnz / self.n_cells
        return f"SparseTensor({shape}, {self.nnz:,} {what}, {share:.3g} %, {self.values.dtype})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.values.size

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def n_observed(self) -> int:
        return self.n_cells if self.absent == "zero" else self.nnz

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + sum(c.nbytes for c in self.indices)

    @cached_property
    def events(self) -> Events:
        """The entries, as compiled loops read them."""
        return Events(self.indices, self.values, self.shape)

    @cached_property
    def fiber_indices(self) -> tuple[FiberIndex, ...]:
        """For each mode, the fibers that are not empty. Built once, when first asked for."""
        return build_fiber_indices(self.indices, self.shape)

    def to_dense(self, max_bytes: float = 1e9) -> np.ndarray:
        """All cells as a NumPy array; an array larger than ``max_bytes`` is refused."""
        size = self.n_cells * self.values.itemsize
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
        out = np.zeros(self.shape, self.values.dtype)
        out[self.indices] = self.values
        return out

    # What a storage offers to fits.

    def handle(self) -> np.ndarray:
        return np.concatenate(
            [self.events.handle(), *(index.handle() for index in self.fiber_indices)]
        )

    def gather_block(self, dtype: str) -> Block:
        return sparse_gather(self.values.dtype.name, dtype)

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Cells that are not stored read as zero."""
        handle = np.array([*self.events.handle(), self.nnz, *_significance(self.shape)], np.int64)
        sparse_cells(self.values.dtype.name)(handle, offsets(self.shape), rows, x)

    def mean(self) -> float:
        return float(self.values.sum(dtype=np.float64)) / max(self.n_observed, 1)

    def typical(self) -> float:
        """What the best model of rank one predicts at the nonzeros, in the mean.

        The mean over all cells says little: it vanishes with the size of the tensor.
        """
        if self.absent == "unobserved" or self.nnz == 0:
            return self.mean()
        chosen = np.random.default_rng(0).integers(self.nnz, size=4096)
        total = float(self.values.sum(dtype=np.float64))
        if total <= 0:
            return self.mean()
        model = np.full(chosen.size, total)
        for sums, column in zip(self.marginals(), self.indices, strict=True):
            model *= sums[column[chosen]] / total
        return float(model.mean())

    def mean_square(self) -> float:
        return float(np.square(self.values, dtype=np.float64).sum()) / max(self.n_observed, 1)

    def marginals(self) -> list[np.ndarray]:
        """The sums over the slices of each mode."""
        sums = [np.zeros(size) for size in self.shape]
        # A piece at a time: bincount works on copies in 64 bits.
        for start in range(0, self.nnz, PIECE):
            piece = slice(start, start + PIECE)
            x = self.values[piece].astype(np.float64)
            for total, column in zip(sums, self.indices, strict=True):
                total += np.bincount(column[piece], weights=x, minlength=total.size)
        return sums

    def lowest(self) -> float:
        stored = float(self.values.min()) if self.nnz else 0.0
        return stored if self.absent == "unobserved" else min(stored, 0.0)

    def check(self, loss: Loss) -> None:
        if self.absent == "zero" and not loss.allows_zeros:
            raise IncompatibleError(
                f"Loss '{loss}' cannot describe exact zeros (it goes to infinity there), and the "
                f"{self.n_cells - self.nnz:,} cells that are not stored are zeros. Use loss="
                "'poisson' or 'beta(0.5)', or absent='unobserved' if nobody looked at them."
            )
        if self.absent == "unobserved" and self.nnz == 0:
            raise InvalidDataError(f"{self!r} has no observed cell.")
        lowest, allowed = loss.data.value
        x = self.values
        if x.dtype.kind in "bu" and loss.data is not Data.BINARY:
            return
        bad = ~np.isfinite(x) | (x < lowest)
        if loss.data is Data.BINARY:
            bad |= (x != 0) & (x != 1)
        if bad.any():
            at = int(np.argmax(bad))
            cell = ", ".join(str(int(c[at])) for c in self.indices)
            name = {True: "NaN", False: "infinity"}[bool(np.isnan(x[at]))]
            value = str(x[at]) if np.isfinite(x[at]) else name
            more = " Entries of one cell are added up." if loss.data is Data.BINARY else ""
            need = f"loss '{loss}' needs {allowed}"
            raise InvalidDataError(f"X[{cell}] is {value}: {need}.{more}")


def _checked_columns(indices: Any) -> list[np.ndarray]:
    """One array of indices a mode."""
    if isinstance(indices, tuple):
        columns = [np.asarray(c).reshape(-1) for c in indices]
    else:
        table = np.asarray(indices)
        if table.ndim != 2:
            raise InvalidDataError(
                "indices must have one row an entry and one column a mode, or be a tuple of one "
                f"array a mode; got an array of shape {table.shape}."
            )
        columns = list(table.T)
    if len(columns) < 2:
        raise InvalidDataError(f"A sparse tensor has at least two modes; got {len(columns)}.")
    for mode, column in enumerate(columns):
        if column.size != columns[0].size:
            raise InvalidDataError(
                f"Mode {mode} has {column.size} indices, mode 0 has {columns[0].size}; "
                "every entry needs one in each mode."
            )
        if column.size and column.dtype.kind not in "iu":
            raise InvalidDataError(
                f"Indices of mode {mode} must be whole numbers; got dtype {column.dtype}. "
                "Turn labels into numbers first, for example by np.unique(..., "
                "return_inverse=True)."
            )
    return columns


def _checked_values(values: Any, count: int) -> np.ndarray:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "buif":
        raise InvalidDataError(f"values must be real numbers; got dtype {numbers.dtype}.")
    if numbers.ndim == 0:
        numbers = np.full(count, numbers)
    numbers = numbers.reshape(-1)
    if numbers.size != count:
        raise InvalidDataError(f"There are {count} cells in indices but {numbers.size} values.")
    native = numbers.dtype.newbyteorder("=")
    if numbers.dtype.kind == "f" and numbers.dtype.itemsize > 8:
        native = np.dtype(np.float64)
    return numbers.astype(native, copy=False)


def _checked_shape(columns: list[np.ndarray], shape: Sequence[int] | None) -> tuple[int, ...]:
    if shape is None:
        if columns[0].size == 0:
            raise InvalidDataError("There are no entries to take the shape from; pass shape=...")
        sizes = tuple(int(c.max()) + 1 for c in columns)
    else:
        sizes = tuple(int(size) for size in shape)
    if len(sizes) != len(columns) or min(sizes) < 1:
        raise InvalidDataError(
            f"shape {sizes} does not fit indices of {len(columns)} modes: it needs one length, "
            "at least 1, for each."
        )
    if sum(sizes) >= MAX_ROWS:
        raise InvalidDataError(
            f"The factors of shape {sizes} would have {sum(sizes):,} rows in all; the limit is "
            f"{MAX_ROWS:,}. Number only the labels that occur."
        )
    for mode, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if column.size and (column.min() < 0 or column.max() >= size):
            wrong = int(column.min() if column.min() < 0 else column.max())
            raise InvalidDataError(
                f"Index {wrong} of mode {mode} is out of bounds: "
                f"the mode has size {size}, so 0 to {size - 1}."
            )
    return sizes


def _smallest(size: int) -> np.dtype:
    return np.min_scalar_type(size - 1)


def _significance(sizes: Sequence[int]) -> list[int]:
    """The modes in the order that entries are sorted by."""
    return sorted(range(len(sizes)), key=lambda mode: -sizes[mode])


def _canonical(
    columns: list[np.ndarray], values: np.ndarray, sizes: tuple[int, ...], keep_zeros: bool
) -> tuple[list[np.ndarray], np.ndarray]:
    """Sorted entries, the longest mode first, one a cell; arrays that are nobody else's."""
    significance = _significance(sizes)
    ranked = [columns[mode] for mode in significance]
    state = sorting.sortedness(ranked)
    if state == sorting.UNSORTED:
        order = sorting.sorting_order(ranked, [sizes[mode] for mode in significance])
        columns, values = [c[order] for c in columns], values[order]
        ranked = [columns[mode] for mode in significance]
    else:
        values = values.copy()
    if state != sorting.STRICT:
        starts = sorting.distinct_rows(ranked)
        if starts.size < values.size:
            columns, values = [c[starts] for c in columns], _sums(values, starts)
    if not keep_zeros and not values.all():
        stored = values != 0
        columns, values = [c[stored] for c in columns], values[stored]
    return columns, values


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of runs, in the dtype of the values unless they outgrow it."""
    if values.dtype == bool:
        return np.logical_or.reduceat(values, starts)
    wide = np.float64 if values.dtype.kind == "f" else np.int64
    sums = np.add.reduceat(values, starts, dtype=np.promote_types(values.dtype, wide))
    if values.dtype.kind == "f":
        return sums.astype(values.dtype)
    limits = np.iinfo(values.dtype)
    fits = sums.size == 0 or (limits.min <= sums.min() and sums.max() <= limits.max)
    return sums.astype(values.dtype) if fits else sums
