"""Sums of the loss over fibers, some or all, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._common.threads import share
from smartcpd._kernels.compiling import Block
from smartcpd._kernels.curvature import compiled_curvature_pass
from smartcpd._kernels.passes import compiled_fiber_pass
from smartcpd._kernels.split_pass import compiled_split_pass
from smartcpd.losses import Loss

N_GROUPS = 8
CELLS_AT_ONCE = 1 << 14
FIBERS_A_CALL = 1 << 16
NUMBERS_OF_GROUPS = 1 << 24
"""The most numbers that the sums of all groups may hold together."""
CELLS_WORTH_THREADS = 1 << 17


@dataclass(frozen=True)
class FiberPass:
    """A pass over fibers of one mode, which are read by a block; it serves any data that has one.

    It works in the precision of the factors it is given; sums are in float64.
    """

    lines: Callable[[str], Block]
    """Returns, for a precision, the block that fills an array with the cells of fibers, a fiber a
    row.
    """
    handle: np.ndarray
    shape: tuple[int, ...]
    mode: int
    loss: Loss
    n_threads: int = 1
    weigh: Callable[[str], Block] | None = None
    """Returns the same block for the weights of cells; None where all count the same."""
    weights_handle: np.ndarray | None = None

    def value(self, A: np.ndarray, fibers: np.ndarray | None = None) -> float:
        """The sum over all cells, or over those of the given fibers (F x N)."""
        return self._sum(A, fibers, False)[0]

    def gradient(self, A: np.ndarray, fibers: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """The sum and its gradient with respect to all factors."""
        return self._sum(A, fibers, True)

    def split(self, A: np.ndarray, want_value: bool) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the sum (or 0), its gradient with respect to this mode's factor, and that of the
        convex part.
        """
        n_groups, dtype, A = _prepared(A)
        values = np.zeros(n_groups)
        G, C = (np.zeros((n_groups, self.shape[self.mode], A.shape[1])) for _ in range(2))
        compiled = compiled_split_pass(dtype)
        terms = (
            *self._values(dtype),
            self.loss.derivative_block(dtype),
            self.loss.convex_block(dtype),
            self.loss.params,
            want_value,
            A,
        )
        self._run(compiled, dtype, None, terms, (values, G, C))
        return float(values.sum()), _in_order(G), _in_order(C)

    def curvature_product(
        self, A: np.ndarray, V: np.ndarray, fibers: np.ndarray | None = None
    ) -> np.ndarray:
        """The sum's Gauss-Newton matrix at A times the direction V, stacked like A."""
        n_groups, dtype, A = _prepared(A.astype(np.float64))
        V = np.ascontiguousarray(V, dtype=np.float64)
        sums = np.zeros((n_groups, *A.shape))
        terms = self.loss.curvature_block(dtype), self.loss.params, A, V
        self._run(compiled_curvature_pass(), dtype, fibers, terms, (sums,))
        return _in_order(sums)

    def _sum(
        self, A: np.ndarray, fibers: np.ndarray | None, want_gradient: bool
    ) -> tuple[float, np.ndarray]:
        n_groups, dtype, A = _prepared(A)
        values = np.zeros(n_groups)
        sums = np.zeros((n_groups if want_gradient else 1, *A.shape))
        terms = (
            *self._values(dtype),
            self.loss.derivative_block(dtype),
            self.loss.params,
            want_gradient,
            A,
        )
        self._run(compiled_fiber_pass(dtype), dtype, fibers, terms, (values, sums))
        return float(values.sum()), _in_order(sums)

    def _run(
        self,
        compiled: Any,
        dtype: str,
        fibers: np.ndarray | None,
        terms: tuple[Any, ...],
        sums: tuple[np.ndarray, ...],
    ) -> None:
        """Make a compiled pass over fibers; threads share its groups, whose sums are apart."""
        n_cells = math.prod(self.shape) if fibers is None else len(fibers) * self.shape[self.mode]
        n_threads = self.n_threads if n_cells >= CELLS_WORTH_THREADS else 1
        for part in self._groups(fibers, len(sums[0])):

            def work(first: int, end: int, part: np.ndarray = part) -> None:
                compiled(
                    *self._reading(dtype, part[first:end]),
                    *terms,
                    *(of_groups[first:end] for of_groups in sums),
                )

            share(work, len(part), n_threads)

    def _groups(self, fibers: np.ndarray | None, n_groups: int) -> Iterator[np.ndarray]:
        """Fibers in groups (groups x fibers x N): whole groups first, then what is left over."""
        for chunk in self._chunks(fibers):
            size = len(chunk) // n_groups
            whole = n_groups * size
            for part in (
                chunk[:whole].reshape(n_groups, size, chunk.shape[1]),
                chunk[whole:][None],
            ):
                if part.shape[1]:
                    yield np.ascontiguousarray(part, dtype=np.int64)

    def _chunks(self, fibers: np.ndarray | None) -> Iterator[np.ndarray]:
        """Fibers in the order of their indices, some at a time."""
        if fibers is not None:
            for start in range(0, len(fibers), FIBERS_A_CALL):
                yield fibers[start : start + FIBERS_A_CALL]
            return
        shape = list(self.shape)
        shape[self.mode] = 1
        n_fibers = math.prod(shape)
        for start in range(0, n_fibers, FIBERS_A_CALL):
            yield _fibers(tuple(shape), start, min(start + FIBERS_A_CALL, n_fibers))

    def _reading(self, dtype: str, fibers: np.ndarray) -> tuple[Any, ...]:
        """Return the arguments that tell a compiled pass where its cells are."""
        batch = max(1, min(512, CELLS_AT_ONCE // self.shape[self.mode]))
        lines = self.lines(dtype)
        weigh, weights = lines, np.empty(0, np.int64)
        if self.weigh is not None and self.weights_handle is not None:
            weigh, weights = self.weigh(dtype), self.weights_handle
        where = offsets(self.shape), self.mode, fibers, batch
        return lines, self.handle, *where, weigh, weights

    def _values(self, dtype: str) -> tuple[Block, Block]:
        """Return the blocks of the loss, summed up and cell by cell; where no pass needs one of
        them, a block that is compiled already takes its place.
        """
        if self.weigh is None:
            return self.loss.value_block(dtype), self.loss.derivative_block(dtype)
        return self.loss.value_block(dtype), self.loss.values_block(dtype)


@lru_cache(maxsize=4)
def _fibers(shape: tuple[int, ...], first: int, last: int) -> np.ndarray:
    """Where some fibers are: the indices of one a row, in the order of their numbers."""
    return np.stack(np.unravel_index(np.arange(first, last), shape), axis=1)


def _prepared(A: np.ndarray) -> tuple[int, str, np.ndarray]:
    """Return how many groups have sums of their own, and the factors in a precision with its
    name.
    """
    n_groups = max(1, min(N_GROUPS, NUMBERS_OF_GROUPS // A.size))
    dtype = A.dtype.name if A.dtype == np.float32 else "float64"
    return n_groups, dtype, np.ascontiguousarray(A, dtype=dtype)


def _in_order(sums: np.ndarray) -> np.ndarray:
    """The groups' sums added up, always in the same order."""
    total = sums[0]
    for group_sum in sums[1:]:
        total += group_sum
    return total
