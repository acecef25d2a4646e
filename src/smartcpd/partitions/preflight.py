"""The needs of a fit part by part, before it begins: memory, disk, and time for a pass."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from smartcpd._common import threads
from smartcpd._common.memory import budget, readable
from smartcpd._data.event_sums import event_sum
from smartcpd._kernels.lanes import padded
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss
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
class Preflight:
    """The memory, the disk and the time that a fit needs, in bytes and seconds."""

    n_parts: int
    part_bytes: int
    factor_bytes: int
    disk_bytes: int
    max_memory: int
    seconds: float | None = None
    """Seconds of a pass over all parts, as far as one of them tells."""

    @property
    def memory_bytes(self) -> int:
        return PARTS_IN_MEMORY * self.part_bytes + self.factor_bytes

    def check(self, X: PartitionedTensor, rank: int) -> None:
        """Raise an error if the allowed memory does not suffice."""
        if self.memory_bytes > self.max_memory:
            raise InvalidParameterError(
                f"A fit of {X!r} at rank {rank} needs about {readable(self.memory_bytes)}: "
                f"{readable(self.factor_bytes)} for factors and their gradients, and "
                f"{readable(PARTS_IN_MEMORY * self.part_bytes)} to read parts of up to "
                f"{readable(self.part_bytes)}; max_memory is {readable(self.max_memory)}. Raise "
                "max_memory, lower the rank, or write smaller parts."
            )

    def __str__(self) -> str:
        text = (
            f"read from disk in {self.n_parts} part{'s' * (self.n_parts > 1)} "
            f"({readable(self.disk_bytes)}): "
            f"about {readable(self.memory_bytes)} of memory of {readable(self.max_memory)} allowed"
        )
        return text if self.seconds is None else f"{text}, {self.seconds:.2g} s a pass"


def preflight(X: PartitionedTensor, rank: int, loss: Loss | None = None) -> Preflight:
    """Return the needs of a fit; with a loss, the time of a pass is measured on one part."""
    largest = max(part.nnz for part in X.manifest.parts)
    rows = padded(np.zeros((1, rank))).shape[1] * 8 * sum(X.shape)
    seconds = None if loss is None else _seconds(X, rank, loss)
    return Preflight(
        X.n_parts,
        largest * X.manifest.entry_bytes * X.reads_here,
        COPIES_OF_FACTORS * rows,
        X.bytes_on_disk,
        budget(X.max_memory),
        seconds,
    )


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
