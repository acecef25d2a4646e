"""The cost of the rows of one factor, with derivatives, the other factors being fixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple, Protocol

import numpy as np

from smartcpd._data.storage import Storage
from smartcpd.losses import Loss


class RowSums(NamedTuple):
    """Sums over the observed cells of each row's slice, weighted as the cells are."""

    value: np.ndarray
    """The cost, (rows,)."""
    slope: np.ndarray
    """The gradient, (rows x R)."""
    bend: np.ndarray
    """The Hessian, (rows x R x R), from the true second derivatives of the cells' losses."""

    @classmethod
    def zeros(cls, n_rows: int, rank: int) -> RowSums:
        return cls(np.zeros(n_rows), np.zeros((n_rows, rank)), np.zeros((n_rows, rank, rank)))

    def plus(self, other: RowSums) -> RowSums:
        """Return the sums over two sets of slices."""
        return RowSums(*(a + b for a, b in zip(self, other, strict=True)))

    def take(self, rows: np.ndarray, other: RowSums) -> RowSums:
        """Return these sums, with those of another where ``rows`` is true."""
        return RowSums(
            np.where(rows, other.value, self.value),
            np.where(rows[:, None], other.slope, self.slope),
            np.where(rows[:, None, None], other.bend, self.bend),
        )


class Slices(Protocol):
    """The slices of one mode of a storage, under a loss and with the other factors fixed."""

    @property
    def exact(self) -> bool:
        """Whether values are those of all cells, and not of all but a constant."""
        ...

    def at(self, A: np.ndarray) -> RowSums:
        """The sums where the rows of the factor are those of A."""
        ...

    def values(self, A: np.ndarray) -> np.ndarray:
        """The values alone."""
        ...

    def row_totals(self) -> np.ndarray:
        """The weighted sum of the data of each slice."""
        ...


@singledispatch
def slices_of(
    storage: Storage, loss: Loss, factors: Sequence[np.ndarray], mode: int, n_threads: int = 1
) -> Slices:
    """The sums over the slices of a mode; each kind of storage registers its own.

    ``factors[mode]`` plays no part.
    """
    raise TypeError(f"{type(storage).__name__} is no storage whose slices can be summed.")


@singledispatch
def entries_a_pass(storage: Storage, loss: Loss, factors: Sequence[np.ndarray]) -> float:
    """How many entries sums over the slices of a mode read; infinite where they cannot be had."""
    return math.inf


def wide_factors(factors: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Factors as compiled loops take them."""
    return tuple(np.ascontiguousarray(A, dtype=np.float64) for A in factors)


def observed_per_row(storage: Storage, mode: int) -> np.ndarray:
    """How many cells of each slice were observed, or the sum of their weights."""
    return storage.row_weights[mode] * (storage.n_cells / storage.shape[mode])
