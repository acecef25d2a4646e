"""A list of cells and what they hold, as compiled loops read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage.paired import PairedEvents
from smartcpd._kernels.cells import sparse_cells
from smartcpd._kernels.compiling import Block
from smartcpd._kernels.events import unpack_block
from smartcpd._kernels.sorting import columns_handle


@dataclass(frozen=True, eq=False)
class Events:
    """One index array a mode, and the values."""

    indices: tuple[np.ndarray, ...]
    values: np.ndarray
    shape: tuple[int, ...]
    weights: np.ndarray | None = None
    """How much each cell counts (float64); None where all count the same."""

    def __len__(self) -> int:
        return self.values.size

    @cached_property
    def paired(self) -> PairedEvents:
        """The same events as pairs of parts. Sorted once, when first asked for."""
        return PairedEvents.of(self)

    def handle(self) -> np.ndarray:
        """Address of the values, then address and item size of each mode's indices.

        The arrays must stay alive while compiled code uses it.
        """
        return np.concatenate([columns_handle([self.values])[:1], columns_handle(self.indices)])

    def own_weights(self, dtype: str = "float64") -> np.ndarray:
        """The weights for compiled code; empty if there are none."""
        given = np.empty(0) if self.weights is None else self.weights
        return given.astype(dtype, copy=False)

    def unpack_block(self, dtype: str) -> Block:
        return unpack_block(self.values.dtype.name, dtype)

    def at(self, positions: np.ndarray) -> Events:
        """Return the events at some positions."""
        weights = None if self.weights is None else self.weights[positions]
        indices = tuple(column[positions] for column in self.indices)
        return Events(indices, self.values[positions], self.shape, weights)

    def rows(self, positions: np.ndarray | slice) -> list[np.ndarray]:
        """The indices of chosen events, mode by mode."""
        return [column[positions].astype(np.intp) for column in self.indices]

    def read(self, rows: np.ndarray, x: np.ndarray, order: Sequence[int] | None = None) -> None:
        """Fill ``x`` with the values of cells; 0 where there is no event.

        ``order`` has the modes that events are sorted by, if that is not by their own lengths.
        """
        modes = significance(self.shape) if order is None else order
        handle = np.array([*self.handle(), len(self), *modes], np.int64)
        sparse_cells(self.values.dtype.name)(handle, offsets(self.shape), rows, x)

    def excess(self) -> Events:
        """Return the events with their weights minus 1 as values: 0 where there is no event."""
        return Events(self.indices, self.own_weights() - 1.0, self.shape)


def significance(sizes: Sequence[int]) -> list[int]:
    """The modes in the order that entries are sorted by."""
    return sorted(range(len(sizes)), key=lambda mode: -sizes[mode])
