"""Which workers a cluster has, and how shards are divided among them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from smartcpd._common.memory import readable
from smartcpd.distributed.worker import Shard
from smartcpd.errors import ClusterError, InvalidParameterError
from smartcpd.partitions.tensor import PartitionedTensor

NEEDED = 1.3
"""Memory that a worker needs, as a multiple of the size of its shards."""
NO_WORKERS = 60.0
"""Seconds to wait for a worker when all are gone."""
LOOK = 0.5
"""Seconds between two checks of what workers are doing."""


def workers_of(client: Any) -> dict[str, dict[str, Any]]:
    """Return the workers by address; wait for some if all are gone."""
    until = time.monotonic() + NO_WORKERS
    while True:
        if client.status != "running":
            raise gone(client)
        try:
            workers = client.scheduler_info(n_workers=-1)["workers"]
        except TypeError:  # versions of Dask without this argument always report all workers
            workers = client.scheduler_info()["workers"]
        if workers:
            return workers
        if time.monotonic() > until:
            raise ClusterError(
                f"The cluster at {client.scheduler_info()['address']} has had no worker for "
                f"{NO_WORKERS:.0f} s; start some."
            )
        time.sleep(LOOK)


def gone(client: Any) -> ClusterError:
    """Return the error that says that the scheduler is gone."""
    address = client.scheduler.address if client.scheduler else "closed by its client"
    return ClusterError(f"The scheduler of the cluster ({address}) is gone.")


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
    limits = [int(w["memory_limit"]) for w in workers.values() if w.get("memory_limit")]
    if not limits:
        return
    each = -(-len(shards) // len(workers))
    largest = max(shards, key=lambda shard: shard.nbytes)
    if NEEDED * each * largest.nbytes > min(limits):
        many = f"{each} shards of the size of {largest} do" if each > 1 else f"{largest} does"
        raise InvalidParameterError(
            f"{many[:1].upper()}{many[1:]} not fit in a worker's {readable(min(limits))} of "
            "memory. Use more workers, or workers with more memory."
        )


def lightest(workers: Sequence[str], homes: dict[int, str]) -> str:
    """Return the worker that has the fewest shards."""
    load = {worker: sum(home == worker for home in homes.values()) for worker in workers}
    return min(workers, key=lambda worker: load[worker])
