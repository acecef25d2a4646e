"""A dense array, read where it lies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd.errors import InvalidDataError
from smartcpd.kernels.cells import dense_cells
from smartcpd.kernels.compiling import Block
from smartcpd.kernels.gather import dense_gather, dense_lines
from smartcpd.losses import Data, Loss
from smartcpd.stack import offsets

SLAB_CELLS = 1 << 18
SCALED_BY = 1 << 21
"""Cells by which the scale of a large tensor is judged."""


@dataclass(frozen=True, eq=False)
class Dense:
    """A NumPy array of any real dtype and memory layout, never copied or changed.

    Memory-mapped and read-only arrays, C or Fortran order and strided views are all read in place.
    """

    array: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Dense:
        """Accept what NumPy understands as an array of real numbers; refuse the rest by name."""
        if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
            raise InvalidDataError(
                f"X is a masked array with {int(np.ma.count_masked(X))} masked cells, and every "
                "cell is taken as observed. Fill them first: X.filled(value)."
            )
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise InvalidDataError(f"X is not an array: {error}.") from None
        if array.dtype == object:
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidDataError(
                    f"X must hold numbers: {error}. Convert it to a numeric array first."
                ) from None
        if array.dtype.kind not in "buif":
            raise InvalidDataError(
                f"X must hold real numbers; got dtype {array.dtype}. "
                + (
                    "Complex data not supported: decompose X.real and X.imag, or abs(X)."
                    if array.dtype.kind == "c"
                    else "Convert it with X.astype(float)."
                )
            )
        if array.ndim < 2:
            raise InvalidDataError(
                f"X must have at least two modes; got {array.ndim}, shape {array.shape}. "
                "Reshape your data: X.reshape(-1, 1) if it has a single feature, or "
                "X.reshape(1, -1) if it is a single sample."
            )
        for mode, size in enumerate(array.shape):
            if size == 0:
                # scikit-learn's common checks expect its wording for empty tables.
                what = ("0 sample(s)", "0 feature(s)")[mode] if mode < 2 else "0 slices"
                raise InvalidDataError(
                    f"X is empty: mode {mode} of shape {array.shape} has length 0 - {what} "
                    f"(shape={array.shape}) while a minimum of 1 is required."
                )
        native = array.dtype.newbyteorder("=")
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:
            native = np.dtype(np.float64)
        return cls(array.astype(native, copy=False))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def n_observed(self) -> int:
        return self.n_cells

    def handle(self) -> np.ndarray:
        address = self.array.__array_interface__["data"][0]
        return np.array([address, *self.array.strides], dtype=np.int64)

    def gather_block(self, dtype: str) -> Block:
        return dense_gather(self.array.dtype.name, dtype)

    def lines_block(self, dtype: str) -> Block:
        """As ``gather_block``, with a fiber a row."""
        return dense_lines(self.array.dtype.name, dtype)

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        dense_cells(self.array.dtype.name)(self.handle(), offsets(self.shape), rows, x)

    def pass_mode(self) -> int:
        """The mode along which reading every fiber is cheapest."""
        long_enough = [
            k for k in range(len(self.shape)) if self.shape[k] >= min(16, max(self.shape))
        ]
        return min(long_enough, key=lambda k: abs(self.array.strides[k]))

    def mean(self) -> float:
        """Over all cells; of a large tensor, over slabs that are spread over it."""
        return self._moments[0]

    def typical(self) -> float:
        return self.mean()

    def mean_square(self) -> float:
        """Over the same cells as `mean`."""
        return self._moments[1]

    def n_events(self) -> float:
        """About how much there is to learn from counts: their sum, or how many there are where
        they are in other units."""
        counts = [(int(np.count_nonzero(slab)), slab.size) for slab in self._spread()]
        nonzero, n_cells = (sum(column) for column in zip(*counts, strict=True))
        return max(self.mean(), nonzero / n_cells) * self.n_cells

    @cached_property
    def _moments(self) -> tuple[float, float]:
        total = squares = 0.0
        n_cells = 0
        for slab in self._spread():
            n_cells += slab.size
            flat = slab.astype(np.float64, copy=False).reshape(-1)
            total += float(flat.sum())
            squares += float(flat @ flat)
        return total / n_cells, squares / n_cells

    def lowest(self) -> float:
        return float(self.array.min())

    def check(self, loss: Loss) -> None:
        lowest, allowed = loss.data.value
        if self.array.dtype.kind in "bu" and loss.data is not Data.BINARY:
            return
        for start, slab in self.slabs():
            bad = ~np.isfinite(slab)
            if lowest > -np.inf:
                bad |= slab < lowest
            if loss.data is Data.BINARY:
                bad |= (slab != 0) & (slab != 1)
            self._refuse(slab, start, bad, f"loss '{loss}' needs {allowed}")

    def _spread(self) -> list[np.ndarray]:
        """All slabs, or enough of them to judge a large tensor by."""
        slabs = [slab for _, slab in self.slabs()]
        return slabs[:: max(1, self.n_cells // SCALED_BY)]

    def slabs(self) -> Iterator[tuple[int, np.ndarray]]:
        """Views of some slices of the first mode at a time, so that no check copies the tensor."""
        step = max(1, SLAB_CELLS * self.shape[0] // self.n_cells)
        for start in range(0, self.shape[0], step):
            yield start, self.array[start : start + step]

    @staticmethod
    def _refuse(slab: np.ndarray, start: int, bad: np.ndarray, need: str) -> None:
        if not bad.any():
            return
        index = np.unravel_index(int(np.argmax(bad)), slab.shape)
        cell = (start + int(index[0]), *(int(i) for i in index[1:]))
        value = slab[index]
        if np.isfinite(value):
            raise InvalidDataError(f"X[{', '.join(map(str, cell))}] is {value!s}: {need}.")
        name = "NaN" if np.isnan(value) else "infinity"
        raise InvalidDataError(
            f"X[{', '.join(map(str, cell))}] is {name}: input X contains {name}, and every cell "
            "must be a finite number. Replace or drop it first."
        )
