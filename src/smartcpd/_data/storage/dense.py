"""A dense array, read where it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage.base import DenseStorage, impossible, random_cells
from smartcpd._data.storage.weights import block_weights, observed_weights
from smartcpd._kernels.cells import dense_cells
from smartcpd._kernels.compiling import Block
from smartcpd._kernels.gather import dense_gather, dense_lines
from smartcpd.errors import InvalidDataError
from smartcpd.losses import Loss

SLAB_CELLS = 1 << 18
SCALED_BY = 1 << 21
"""Number of cells by which the scale of a large tensor is judged."""


@dataclass(frozen=True, eq=False)
class Dense(DenseStorage):
    """A NumPy array of any real dtype and memory layout, never copied or changed.

    Memory-mapped and read-only arrays, C or Fortran order and strided views are all read in place.
    """

    array: np.ndarray
    weights: np.ndarray | None = None
    """How much each cell counts, 0 for those that are missing; None where all count the same."""

    @classmethod
    def of(cls, X: Any, mask: Any = None, weights: Any = None) -> Dense:
        """Accept what NumPy understands as an array of real numbers; refuse the rest by name.

        NaN, the masked cells of a masked array, those where ``mask`` is false and those of weight 0
        are missing.
        """
        array = cls._checked(X)
        masked = isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X)
        hidden = np.ma.getmaskarray(X) if masked else None
        return cls(array, observed_weights(array, hidden, mask, weights))

    @classmethod
    def of_block(cls, X: Any, mask: Any, weights: Any, loss: Loss | None, origin: Any) -> Dense:
        """A part of a larger array, which begins at ``origin``; checked, if it is said for which
        loss. It may have no observed cell."""
        array = cls._checked(X)
        found = cls(array, block_weights(array, mask, weights))
        if loss is not None:
            found.check(loss, origin)
        return found

    @staticmethod
    def _checked(X: Any) -> np.ndarray:
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
        return array.astype(native, copy=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @cached_property
    def n_observed(self) -> float:
        if self.weights is None:
            return self.n_cells
        if self.weights.dtype == bool:
            return int(np.count_nonzero(self.weights))
        return float(self.weights.sum(dtype=np.float64))

    @cached_property
    def n_missing(self) -> int:
        return 0 if self.weights is None else self.n_cells - int(np.count_nonzero(self.weights))

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @cached_property
    def heaviest(self) -> float:
        return 1.0 if self.weights is None else float(self.weights.max())

    @cached_property
    def row_weights(self) -> list[np.ndarray]:
        if self.weights is None:
            return [np.ones(size) for size in self.shape]
        means = [np.zeros(size) for size in self.shape]
        for start, _, w in self._slabs():
            for mode, mean in enumerate(means):
                others = tuple(k for k in range(w.ndim) if k != mode)
                where = slice(start, start + len(w)) if mode == 0 else slice(None)
                mean[where] += w.sum(axis=others, dtype=np.float64) * self.shape[mode]
        return [mean / self.n_cells for mean in means]

    def unobserved_rows(self) -> list[np.ndarray]:
        return [np.flatnonzero(mean == 0) for mean in self.row_weights]

    def drawn(self, sizes: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
        pairs = zip(self.shape, sizes, strict=True)
        return [np.sort(rng.permutation(size)[:n]) for size, n in pairs]

    def gathered(
        self,
        rows: Sequence[np.ndarray],
        loss: Loss | None = None,
        watch: Callable[[], object] | None = None,
    ) -> Dense:
        where = np.ix_(*rows)
        weights = None if self.weights is None else self.weights[where]
        return Dense(np.ascontiguousarray(self.array[where]), weights)

    def reshaped(self, shape: Sequence[int]) -> Dense:
        """Return the same cells in the same order, in another shape; copied if need be."""
        weights = None if self.weights is None else self.weights.reshape(shape)
        return Dense(self.array.reshape(shape), weights)

    def handle(self) -> np.ndarray:
        address = self.array.__array_interface__["data"][0]
        return np.array([address, *self.array.strides], dtype=np.int64)

    def gather_block(self, dtype: str) -> Block:
        return dense_gather(self.array.dtype.name, dtype)

    def lines_block(self, dtype: str) -> Block:
        """Return a block like ``gather_block``, with a fiber a row."""
        return dense_lines(self.array.dtype.name, dtype)

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        dense_cells(self.array.dtype.name)(self.handle(), offsets(self.shape), rows, x)

    def weights_handle(self) -> np.ndarray:
        return np.empty(0, np.int64) if self.weights is None else Dense(self.weights).handle()

    def weigh_block(self, dtype: str) -> Block:
        return self._of_weights.gather_block(dtype)

    def weigh_lines_block(self, dtype: str) -> Block:
        """Return a block like ``weigh_block``, with a fiber a row."""
        return self._of_weights.lines_block(dtype)

    def read_weights(self, rows: np.ndarray, w: np.ndarray) -> None:
        if self.weights is None:
            w[:] = 1.0
        else:
            self._of_weights.read_cells(rows, w)

    @property
    def _of_weights(self) -> Dense:
        """Return the weights as a tensor of their own; the data stands in where there are none."""
        return self if self.weights is None else Dense(self.weights)

    def pass_mode(self) -> int:
        """The mode along which reading every fiber is cheapest."""
        long_enough = [
            k for k in range(len(self.shape)) if self.shape[k] >= min(16, max(self.shape))
        ]
        return min(long_enough, key=lambda k: abs(self.array.strides[k]))

    def mean(self) -> float:
        """Return the mean over all cells; of a large tensor, over slabs that are spread over it."""
        return self._moments[0]

    def typical(self) -> float:
        return self.mean()

    def mean_square(self) -> float:
        """Return the mean square over the same cells as `mean`."""
        return self._moments[1]

    def n_events(self) -> float:
        """Return about how much there is to learn from counts: their sum, or how many there are
        where they are in other units.
        """
        counts = [(int(np.count_nonzero(x)), x.size) for x, _ in self._observed()]
        nonzero, n_cells = (sum(column) for column in zip(*counts, strict=True))
        return max(self.mean(), nonzero / max(n_cells, 1)) * (self.n_cells - self.n_missing)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        total = squares = n_cells = 0.0
        for x, w in self._observed():
            flat = x.astype(np.float64, copy=False).reshape(-1)
            if w is None:
                n_cells += flat.size
                total += float(flat.sum())
                squares += float(flat @ flat)
            else:
                n_cells += float(w.sum())
                total += float(w @ flat)
                squares += float(w @ (flat * flat))
        return total / max(n_cells, 1e-300), squares / max(n_cells, 1e-300)

    def lowest(self) -> float:
        if self.weights is None:
            return float(self.array.min())
        known = (slab[w != 0] for _, slab, w in self._slabs())
        return min(float(x.min()) for x in known if x.size)

    def check(self, loss: Loss, origin: Sequence[int] | None = None) -> None:
        """Check the values; messages count cells from ``origin`` on, where the array is a part of a
        larger one.
        """
        for start, slab, w in self._slabs():
            bad = impossible(slab, loss)
            if bad is None:
                return
            if w is not None:
                bad &= w != 0
            first = [0] * slab.ndim if origin is None else list(origin)
            first[0] += start
            self._refuse(slab, first, bad, f"loss '{loss}' needs {loss.data.value[1]}")

    def observed_slabs(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        for start, slab, w in self._slabs():
            yield start, slab, None if w is None else w != 0

    def some_cells(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return random_cells(self.shape, count, rng)

    def weighted_values(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        return self._weighted(self._slabs())

    def _observed(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """The observed cells of all slabs, or of enough of them to judge a large tensor by, with
        their weights."""
        slabs = list(self._slabs())
        chosen = slabs[:: max(1, self.n_cells // SCALED_BY)]
        if self.weights is not None and not any(w.any() for _, _, w in chosen):
            chosen = slabs
        return self._weighted(chosen)

    @staticmethod
    def _weighted(
        slabs: Iterable[tuple[int, np.ndarray, Any]],
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        for _, slab, w in slabs:
            if w is None:
                yield slab, None
            else:
                seen = w != 0
                yield slab[seen], w[seen].astype(np.float64)

    def _slabs(self) -> Iterator[tuple[int, np.ndarray, Any]]:
        """Views of some slices of the first mode at a time, and of their weights if there are any,
        so that no check copies the tensor."""
        step = max(1, SLAB_CELLS * self.shape[0] // self.n_cells)
        for start in range(0, self.shape[0], step):
            where = slice(start, start + step)
            yield start, self.array[where], None if self.weights is None else self.weights[where]

    @staticmethod
    def _refuse(slab: np.ndarray, first: Sequence[int], bad: np.ndarray, need: str) -> None:
        if not bad.any():
            return
        index = np.unravel_index(int(np.argmax(bad)), slab.shape)
        cell = tuple(start + int(i) for start, i in zip(first, index, strict=True))
        value = slab[index]
        if np.isfinite(value):
            raise InvalidDataError(f"X[{', '.join(map(str, cell))}] is {value!s}: {need}.")
        name = "NaN" if np.isnan(value) else "infinity"
        raise InvalidDataError(
            f"X[{', '.join(map(str, cell))}] is {name}: input X contains {name}, and every cell "
            "must be a finite number. Replace or drop it first."
        )
