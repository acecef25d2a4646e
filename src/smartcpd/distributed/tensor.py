"""A partitioned tensor whose parts are held by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from smartcpd._data.event_sums import Sum
from smartcpd._data.storage.entries import Entries
from smartcpd.distributed import worker
from smartcpd.distributed.cluster import Cluster
from smartcpd.distributed.pool import Pool
from smartcpd.distributed.rounds import rounds, suits
from smartcpd.partitions.row_range import RowRange
from smartcpd.partitions.tensor import EventSum, PartitionedTensor


@dataclass(frozen=True, eq=False, repr=False)
class ShardedTensor(PartitionedTensor):
    """A tensor whose sums come from workers, and whose figures come from the folder."""

    reads_here: ClassVar[bool] = False
    pool: Any = None
    """The `Pool` of workers that hold the parts."""

    @classmethod
    def on(cls, cluster: Cluster, X: PartitionedTensor) -> ShardedTensor:
        """Share out a folder or a list; workers load their shards with the first question."""
        return cls(X.path, X.manifest, X.max_memory, X.figures, pool=Pool(cluster, X))

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {len(self.pool.shards)} shards)"

    def within(self, max_memory: str | int | None) -> ShardedTensor:
        """Return the tensor itself, since workers have memory of their own."""
        return self

    def local_method(self, problem: Any) -> Any:
        """Return the method that makes updates on the workers, if it suits the problem."""
        return rounds if suits(problem) else None

    def entries(self, number: int) -> Entries:
        """Return the entries of a part."""
        return self.pool.tensor.entries(number)

    def each_bytes(self) -> Iterator[bytes]:
        """Yield what the parts are kept as."""
        return self.pool.tensor.each_bytes()

    @property
    def bytes_on_disk(self) -> int:
        """Bytes of the parts on disk."""
        return self.pool.tensor.bytes_on_disk

    def event_sums(
        self, wanted: EventSum, A: np.ndarray, n_threads: int
    ) -> Iterator[tuple[RowRange, Sum]]:
        sums = self.pool.ask(worker.summed, lambda shard: (wanted, shard.row_range.take(A)))
        for shard, found in zip(self.pool.shards, sums, strict=True):
            yield shard.row_range, found

    def _drawn(self, counts: np.ndarray, seeds: np.ndarray) -> list[Entries]:
        def arguments(shard: worker.Shard) -> tuple[Any, ...]:
            where = list(shard.parts)
            return counts[where].tolist(), seeds[where].tolist()

        found = self.pool.ask(worker.drawn, arguments)
        return [entries for of_shard in found for entries in of_shard]
