"""The objective of a sparse tensor in parts: their events one part after the other, and all zeros
at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcpd._data.event_sums import Sum
from smartcpd._objectives.base import Estimate, objective_of, scaled_gradient
from smartcpd._objectives.sparse import SparseObjective
from smartcpd.losses import Loss
from smartcpd.partitions.tensor import EventSum, PartitionedTensor


@dataclass(frozen=True)
class PartitionedObjective(SparseObjective):
    """The objective of a tensor whose parts every pass takes one after the other.

    A part touches only its own rows of the mode that was divided; sums are made in the order of the
    parts, so that they do not depend on who read them.
    """

    storage: PartitionedTensor  # type: ignore[assignment]

    def events(self, A: np.ndarray, want_gradient: bool, chosen: np.ndarray | None = None) -> Sum:
        assert chosen is None
        kind = "whole" if self.storage.absent == "unobserved" else "surplus"
        return self._sum(kind, A, want_gradient)

    def convex_gradient(self, A: np.ndarray) -> np.ndarray:
        return self._sum("whole", A, True, convex=True).gradient / self.storage.n_observed

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        return self.estimate

    def _sum(self, kind: str, A: np.ndarray, want_gradient: bool, convex: bool = False) -> Sum:
        wanted = EventSum(self.loss, kind, want_gradient, convex)
        return wanted.joined(self.storage.event_sums(wanted, A, self.n_threads), A)


@scaled_gradient.register
def _(objective: PartitionedObjective, A: np.ndarray) -> tuple[float, np.ndarray]:
    value, gradient = objective.gradient(A)
    return value, A * gradient


@objective_of.register
def _(storage: PartitionedTensor, loss: Loss, n_threads: int = 1) -> PartitionedObjective:
    return PartitionedObjective(storage, loss, n_threads)
