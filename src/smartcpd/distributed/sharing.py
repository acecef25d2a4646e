"""How data is divided into shards, and shards among workers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from smartcpd._common.memory import readable
from smartcpd.distributed.worker import Shard
from smartcpd.distributed.workers import least_memory
from smartcpd.errors import InvalidParameterError
from smartcpd.partitions.tensor import PartitionedTensor

NEEDED = 1.3
"""Memory that a worker needs, as a multiple of the size of its shards."""


def shards_of(X: PartitionedTensor, n_shards: int) -> list[Shard]:
    """Divide a folder into shards of neighbouring parts, or a list into its tensors."""
    fit = uuid.uuid4().hex
    shards = []
    counts = [part.nnz for part in X.manifest.parts]
    for number, parts in enumerate(divided(counts, X.n_shards(n_shards))):
        row_ranges = tuple(X.row_range(k) for k in parts)
        nbytes = X.manifest.entry_bytes * sum(counts[k] for k in parts)
        shards.append(Shard(fit, number, X.folder, tuple(parts), row_ranges, nbytes))
    return shards


def divided(counts: Sequence[int], n_shards: int) -> list[list[int]]:
    """Choose neighbouring parts for each shard, with about equally many entries."""
    ends = np.cumsum(counts)
    wanted = ends[-1] * np.arange(1, n_shards) / n_shards
    cuts = np.searchsorted(ends - np.asarray(counts) / 2, wanted).tolist()
    last = 0
    for k, cut in enumerate(cuts):
        # The bounds leave every shard at least one part.
        last = min(max(cut, last + 1), len(counts) - n_shards + k + 1)
        cuts[k] = last
    return [list(range(a, b)) for a, b in pairwise([0, *cuts, len(counts)])]


def check_memory(shards: Sequence[Shard], workers: dict[str, dict[str, Any]]) -> None:
    """Raise an error that names the shards for which workers have no room."""
    least = least_memory(workers.values())
    each = -(-len(shards) // len(workers))
    largest = max(shards, key=lambda shard: shard.nbytes)
    if least is not None and NEEDED * each * largest.nbytes > least:
        many = f"{each} shards of the size of {largest} do" if each > 1 else f"{largest} does"
        raise InvalidParameterError(
            f"{many[:1].upper()}{many[1:]} not fit in a worker's {readable(least)} of "
            "memory. Use more workers, or workers with more memory."
        )


def lightest(workers: Sequence[str], homes: dict[int, str]) -> str:
    """Return the worker that has the fewest shards."""
    load = {worker: sum(home == worker for home in homes.values()) for worker in workers}
    return min(workers, key=lambda worker: load[worker])
