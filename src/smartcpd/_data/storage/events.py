"""A list of cells and what they hold, as compiled loops read it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
