"""An index of the fibers of a sparse tensor that are not empty."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from smartcpd._kernels.sorting import distinct_rows, sorting_order


@dataclass(frozen=True, eq=False)
class FiberIndex:
    """The entries sorted by the fibers of one mode.

    Attributes
    ----------
    order : int64 array
        Positions of the entries, fiber after fiber, each in the order of its rows.
    starts : int64 array
        Where each fiber begins in ``order``; one more at the end.
    """

    order: np.ndarray
    starts: np.ndarray

    @property
    def n_fibers(self) -> int:
        return self.starts.size - 1

    def entries_of(self, fibers: np.ndarray) -> np.ndarray:
        """Positions of the entries of the chosen fibers, one fiber after the other."""
        first, counts = self.starts[fibers], self.starts[fibers + 1] - self.starts[fibers]
        # A ramp that starts anew at every fiber.
        ramp = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.order[np.repeat(first, counts) + ramp]

    def handle(self) -> np.ndarray:
        """Addresses of the two arrays, and the number of fibers."""
        addresses = [a.__array_interface__["data"][0] for a in (self.order, self.starts)]
        return np.array([*addresses, self.n_fibers], dtype=np.int64)


def build_fiber_indices(
    indices: Sequence[np.ndarray], shape: Sequence[int]
) -> tuple[FiberIndex, ...]:
    """Build one index a mode, side by side."""

    def build(mode: int) -> FiberIndex:
        others = [k for k in range(len(shape)) if k != mode]
        significance = [*others, mode]
        order = sorting_order([indices[k] for k in significance], [shape[k] for k in significance])
        starts = distinct_rows([indices[k][order] for k in others])
        return FiberIndex(order, np.append(starts, order.size))

    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(build, range(len(shape))))
