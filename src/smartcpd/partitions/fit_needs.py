"""The memory, disk and time that a fit part by part takes, known before it begins."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smartcpd._common import threads
from smartcpd._common.memory import budget, readable
from smartcpd._data.event_sums import event_sum
from smartcpd._kernels.lanes import padded
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Loss

if TYPE_CHECKING:
    from smartcpd.partitions.tensor import PartitionedTensor

PARTS_IN_MEMORY = 4
"""Parts that are in memory at once: the one that is worked on, the next, and what they are decoded
from.
"""
COPIES_OF_FACTORS = 12
"""Arrays of the size of the factors: factors, gradients, ends of steps, and sums of groups of
entries.
"""


@dataclass(frozen=True)
class PartitionedFitNeeds:
    """What a fit of some rank to a tensor that is read part by part takes."""

    tensor: str
    """What messages call the tensor."""
    rank: int
    n_parts: int
    part_bytes: int
    """Bytes of the largest part in memory; 0 if parts are read elsewhere."""
    factor_bytes: int
    disk_bytes: int
    whole_bytes: int
    """Bytes that a fit of the whole tensor in memory would take for entries."""
    max_memory: int
    seconds: float | None = None
    """Seconds that a pass over all parts takes, as far as one of them tells."""

    @classmethod
    def of(cls, X: PartitionedTensor, rank: int, loss: Loss | None = None) -> PartitionedFitNeeds:
        """Measure, with a loss, the time of a pass on one part."""
        largest = max(part.nnz for part in X.manifest.parts)
        rows = padded(np.zeros((1, rank))).shape[1] * 8 * sum(X.shape)
        return cls(
            repr(X),
            rank,
            X.n_parts,
            largest * X.manifest.entry_bytes * X.reads_here,
            COPIES_OF_FACTORS * rows,
            X.bytes_on_disk,
            X.bytes_of_fit,
            budget(X.max_memory),
            None if loss is None else _seconds(X, rank, loss),
        )

    @property
    def memory_bytes(self) -> int:
        return PARTS_IN_MEMORY * self.part_bytes + self.factor_bytes

    def check(self) -> None:
        if self.memory_bytes > self.max_memory:
            raise InvalidParameterError(
                f"A fit of {self.tensor} at rank {self.rank} needs about "
                f"{readable(self.memory_bytes)}: {readable(self.factor_bytes)} for factors and "
                f"their gradients, and {readable(PARTS_IN_MEMORY * self.part_bytes)} to read parts "
                f"of up to {readable(self.part_bytes)}; max_memory is "
                f"{readable(self.max_memory)}. Raise max_memory, lower the rank, or write smaller "
                "parts."
            )

    def refusal(self, reader: str, able: str) -> IncompatibleError:
        return IncompatibleError(
            f"{self.tensor} is larger than max_memory={readable(self.max_memory)} and is read part "
            f"by part, but {reader} does not do that (those of {able} do). Raise max_memory to "
            f"{readable(self.whole_bytes)} or more, or pass X.load()."
        )

    def __str__(self) -> str:
        text = (
            f"read from disk in {self.n_parts} part{'s' * (self.n_parts > 1)} "
            f"({readable(self.disk_bytes)}): "
            f"about {readable(self.memory_bytes)} of memory of {readable(self.max_memory)} allowed"
        )
        return text if self.seconds is None else f"{text}, {self.seconds:.2g} s a pass"


def _seconds(X: PartitionedTensor, rank: int, loss: Loss) -> float:
    """Return the seconds of a pass, in which parts are read while others are worked on."""
    number = int(np.argsort([part.nnz for part in X.manifest.parts])[X.n_parts // 2])
    began = time.perf_counter()
    events = X.events(number)
    read = time.perf_counter() - began
    A = np.ones((sum(events.shape), rank))
    n_threads = threads.resolve(None)
    kind = "whole" if X.absent == "unobserved" else "surplus"
    with threads.limited_to(n_threads):
        event_sum(events.at(np.arange(1)), loss, kind, A, True, n_threads)  # compiles
        began = time.perf_counter()
        event_sum(events, loss, kind, A, True, n_threads)
        computed = time.perf_counter() - began
    return max(read, computed) * X.n_events / max(len(events), 1)
