"""The memory of data that is not kept: how much every row of a factor would cost elsewhere.

For the slices that came before, each row of the other factors keeps a quadratic of their loss
around where it was: a slope and an R x R Hessian. Rows and modes are taken as separate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._inference.streaming.early import EarlySlices
from smartcpd._methods.row_newton import Costs, all_positive
from smartcpd._objectives.slices.sums import RowSums


@dataclass(frozen=True)
class Memory:
    """The quadratic of each row of one factor."""

    centre: np.ndarray
    slope: np.ndarray
    bend: np.ndarray

    @classmethod
    def of(cls, A: np.ndarray, sums: RowSums) -> Memory:
        """Remember the sums at A; where the loss curves downwards they say nothing about other
        places.
        """
        bend = sums.bend
        if not all_positive(bend):
            values, vectors = np.linalg.eigh(bend)
            bend = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
        return cls(A.copy(), sums.slope.copy(), bend)

    def at(self, A: np.ndarray) -> RowSums:
        step = A - self.centre
        bent = np.einsum("jrs,js->jr", self.bend, step)
        value = ((self.slope + 0.5 * bent) * step).sum(axis=1)
        return RowSums(value, self.slope + bent, self.bend)

    def values(self, A: np.ndarray) -> np.ndarray:
        return self.at(A).value

    def plus(self, other: Memory) -> Memory:
        """Add both quadratics, around the rows of this one."""
        there = other.at(self.centre)
        return Memory(self.centre, self.slope + there.slope, self.bend + other.bend)

    def faded(self, share: float) -> Memory:
        return Memory(self.centre, share * self.slope, share * self.bend)


@dataclass(frozen=True)
class WithMemory:
    """The cost of new data and of what is remembered of old data."""

    new: Costs
    memory: Memory

    def at(self, A: np.ndarray) -> RowSums:
        pairs = zip(self.new.at(A), self.memory.at(A), strict=True)
        return RowSums(*(new + old for new, old in pairs))

    def values(self, A: np.ndarray) -> np.ndarray:
        return self.new.values(A) + self.memory.values(A)


@dataclass(frozen=True)
class Past:
    """All that is kept of the slices that came before.

    Attributes
    ----------
    mode : int
        The mode that grows.
    memories : dict
        The memory of every other mode.
    n_observed : float
        Cells that were observed, or their weights; those of older slices count less where they are
        forgotten. The same holds for ``loss``, the sum of their losses when they came.
    early : EarlySlices or None
        The slices themselves, while they are few.
    """

    mode: int
    memories: dict[int, Memory]
    n_observed: float
    loss: float
    early: EarlySlices | None = None

    def faded(self, share: float) -> Past:
        if share == 1.0:
            return self
        memories = {mode: memory.faded(share) for mode, memory in self.memories.items()}
        return Past(self.mode, memories, share * self.n_observed, share * self.loss)
