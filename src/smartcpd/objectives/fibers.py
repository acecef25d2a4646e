"""Sums of the loss over fibers, some or all, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from smartcpd.kernels.compiling import Block
from smartcpd.kernels.passes import compiled_fiber_pass
from smartcpd.losses import Loss
from smartcpd.stack import offsets

N_GROUPS = 8
CELLS_AT_ONCE = 1 << 14
FIBERS_A_CALL = 1 << 16
CELLS_WORTH_THREADS = 1 << 17


@dataclass(frozen=True)
class FiberPass:
    """Reads fibers by a gather block, so that it serves any data that has one."""

    gather: Block
    handle: np.ndarray
    shape: tuple[int, ...]
    loss: Loss
    n_threads: int = 1

    def value(self, A: np.ndarray, mode: int) -> float:
        """The sum over all cells, read along the fibers of one mode."""
        return sum(self.over(A, mode, f, False)[0] for f in self._all_fibers(mode))

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum over all cells and its gradient; one pass for each mode."""
        parts = [self.mode_gradient(A, mode) for mode in range(len(self.shape))]
        return parts[-1][0], np.concatenate([G for _, G in parts])

    def mode_gradient(self, A: np.ndarray, mode: int) -> tuple[float, np.ndarray]:
        """The sum over all cells and one mode's gradient; a single pass."""
        value, gradient = 0.0, np.zeros((self.shape[mode], A.shape[1]))
        for fibers in self._all_fibers(mode):
            part, G = self.over(A, mode, fibers, True)
            value += part
            gradient += G
        return value, gradient

    def over(
        self, A: np.ndarray, mode: int, fibers: np.ndarray, want_gradient: bool
    ) -> tuple[float, np.ndarray]:
        """The sum over the cells of the given fibers (F x N) and one mode's gradient.

        Whole groups first, then what is left over.
        """
        n_rows = self.shape[mode]
        group_size = len(fibers) // N_GROUPS
        parts = [fibers[: N_GROUPS * group_size].reshape(N_GROUPS, group_size, fibers.shape[1])]
        parts.append(fibers[N_GROUPS * group_size :][None])
        total, G = 0.0, np.zeros((n_rows, A.shape[1]))
        for part in parts:
            if part.shape[1] == 0:
                continue
            values = np.zeros(len(part))
            sums = np.zeros((len(part) if want_gradient else 0, n_rows, A.shape[1]))
            self._run(A, mode, part, want_gradient, values, sums)
            total += float(values.sum())
            for group_sum in sums:
                G += group_sum
        return total, G

    def _all_fibers(self, mode: int) -> Iterator[np.ndarray]:
        shape = list(self.shape)
        shape[mode] = 1
        n_fibers = int(np.prod(shape, dtype=object))
        for start in range(0, n_fibers, FIBERS_A_CALL):
            ids = np.arange(start, min(start + FIBERS_A_CALL, n_fibers))
            yield np.stack(np.unravel_index(ids, shape), axis=1)

    def _run(
        self,
        A: np.ndarray,
        mode: int,
        fibers: np.ndarray,
        want_gradient: bool,
        values: np.ndarray,
        sums: np.ndarray,
    ) -> None:
        n_rows = self.shape[mode]
        n_cells = fibers.shape[0] * fibers.shape[1] * n_rows
        parallel = self.n_threads > 1 and n_cells >= CELLS_WORTH_THREADS
        compiled_fiber_pass(parallel)(
            self.gather,
            self.handle,
            offsets(self.shape),
            mode,
            np.ascontiguousarray(fibers),
            max(1, min(256, CELLS_AT_ONCE // n_rows)),
            self.loss.value_block("float64"),
            self.loss.derivative_block("float64"),
            self.loss.params,
            want_gradient,
            np.ascontiguousarray(A, dtype=np.float64),
            values,
            sums,
        )
