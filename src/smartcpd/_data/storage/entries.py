"""The entries of a sparse tensor: checked, sorted, one a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._data.storage.events import Events, significance
from smartcpd._data.storage.weights import check_weights
from smartcpd._kernels import sorting
from smartcpd.errors import InvalidDataError, InvalidParameterError

MAX_ROWS = 2**32


@dataclass(frozen=True)
class Entries:
    """One index array a mode, what the cells hold, and how much they count if that differs."""

    columns: list[np.ndarray]
    values: np.ndarray
    weights: np.ndarray | None = None

    def at(self, chosen: np.ndarray | slice) -> Entries:
        """Return some of the entries, by a mask, by positions or as a stretch of them."""
        weights = None if self.weights is None else self.weights[chosen]
        return Entries([c[chosen] for c in self.columns], self.values[chosen], weights)

    @staticmethod
    def joined(parts: Sequence[Entries]) -> Entries:
        """Return all entries of several parts; all have weights, or none has."""
        columns = [np.concatenate(c) for c in zip(*(p.columns for p in parts), strict=True)]
        weights = [p.weights for p in parts if p.weights is not None]
        return Entries(
            columns,
            np.concatenate([p.values for p in parts]),
            np.concatenate(weights) if weights else None,
        )


def checked_columns(indices: Any) -> list[np.ndarray]:
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


def checked_values(values: Any, count: int) -> np.ndarray:
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


def checked_shape(columns: list[np.ndarray], shape: Sequence[int] | None) -> tuple[int, ...]:
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


def smallest(size: int) -> np.dtype:
    return np.min_scalar_type(size - 1)


def checked_weights(weights: Any, count: int) -> np.ndarray | None:
    """Return one number an entry, or None."""
    if weights is None:
        return None
    found = np.asarray(weights)
    if found.dtype.kind not in "buif" or found.shape not in ((), (count,)):
        raise InvalidParameterError(
            f"weights must be {count} numbers, one an entry; got shape {found.shape} of "
            f"{found.dtype}."
        )
    found = np.broadcast_to(found, (count,)).astype(np.float64)
    check_weights(found)
    return found


def canonical(
    columns: list[np.ndarray],
    values: np.ndarray,
    weights: np.ndarray | None,
    sizes: tuple[int, ...],
    keep_zeros: bool,
) -> Entries:
    """Sorted entries, the longest mode first, one a cell; arrays that are nobody else's."""
    columns = [c.astype(smallest(size)) for c, size in zip(columns, sizes, strict=True)]
    ranked = [columns[mode] for mode in significance(sizes)]
    state = sorting.sortedness(ranked)
    entries = Entries(columns, values, weights)
    if state == sorting.UNSORTED:
        order = sorting.sorting_order(ranked, [sizes[mode] for mode in significance(sizes)])
        entries = entries.at(order)
    else:
        entries = Entries(columns, values.copy(), weights)
    if state != sorting.STRICT:
        starts = sorting.distinct_rows([entries.columns[mode] for mode in significance(sizes)])
        if starts.size < values.size:
            entries = _added_up(entries, starts)
    if keep_zeros:
        return entries
    # A zero that counts like any other need not be stored.
    stored = entries.values != 0
    if entries.weights is not None:
        stored |= entries.weights != 1
    return entries if stored.all() else entries.at(stored)


def _added_up(entries: Entries, starts: np.ndarray) -> Entries:
    if entries.weights is not None:
        twice = int(np.setdiff1d(np.arange(entries.values.size), starts)[0])
        cell = ", ".join(str(int(c[twice])) for c in entries.columns)
        raise InvalidDataError(
            f"Cell ({cell}) is given more than once, and weights say how much a cell counts. Add "
            "up the entries of each cell first."
        )
    return Entries([c[starts] for c in entries.columns], _sums(entries.values, starts))


def without_missing(
    entries: Entries, missing: list[np.ndarray], sizes: tuple[int, ...], zeros: bool
) -> tuple[Entries, list[np.ndarray], Events]:
    """The entries that were observed, the cells that were not, and what compiled loops read.

    ``zeros`` says whether cells that are not stored are zeros. If so, loops have to see the missing
    cells as well, to take them out of the sum over all of them.
    """
    if missing[0].size == 0 and entries.weights is None:
        return entries, missing, Events(tuple(entries.columns), entries.values, sizes)
    unseen = canonical(missing, np.ones(missing[0].size, bool), None, sizes, True)
    own = entries.weights
    if own is None:
        own = np.ones(entries.values.size)
    everything = Entries(
        [np.concatenate(pair) for pair in zip(entries.columns, unseen.columns, strict=True)],
        np.concatenate([entries.values, np.zeros(unseen.values.size, entries.values.dtype)]),
        np.concatenate([own, np.zeros(unseen.values.size)]),
    )
    ranked = [everything.columns[mode] for mode in significance(sizes)]
    everything = everything.at(
        sorting.sorting_order(ranked, [sizes[mode] for mode in significance(sizes)])
    )
    starts = sorting.distinct_rows([everything.columns[mode] for mode in significance(sizes)])
    weights = everything.weights
    assert weights is not None
    lightest = np.minimum.reduceat(weights, starts) if starts.size else weights
    everything = everything.at(starts)
    seen = lightest > 0
    values = np.where(seen, everything.values, everything.values.dtype.type(0))
    union = Entries(everything.columns, values, lightest)
    stored = union.at(seen)
    assert stored.weights is not None
    same = stored.weights.size == 0 or stored.weights.min() == stored.weights.max()
    if same and (not zeros or stored.weights.size == 0 or stored.weights[0] == 1):
        stored = Entries(stored.columns, stored.values)
    if not zeros or (seen.all() and stored.weights is None):
        columns, values, own = stored.columns, stored.values, stored.weights
    else:
        columns, values, own = union.columns, union.values, union.weights
    cells = [c[~seen] for c in union.columns] if zeros else unseen.columns
    return stored, cells, Events(tuple(columns), values, sizes, own)


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
