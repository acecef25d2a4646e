"""A fit whose data is held by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smartcpd._common.memory import readable
from smartcpd._data.tiled.source import source_of
from smartcpd.distributed.arrays import fit_array_on, with_checkpoint
from smartcpd.distributed.cluster import as_cluster, parts_of
from smartcpd.distributed.pool import Pool
from smartcpd.distributed.tensor import ShardedTensor
from smartcpd.errors import ClusterError


def fit_on(client: Any, X: Any, parameters: dict[str, Any], fit: Callable[..., Any]) -> Any:
    """Fit data, without labels, that the workers of a cluster hold and pass over."""
    cluster = as_cluster(client)
    if source_of(X) is not None:
        return fit_array_on(cluster.client, X, parameters, fit)
    sharded: Any = ShardedTensor.on(cluster, parts_of(X))
    pool = sharded.pool
    try:
        found = fit(sharded, **parameters)
    except ClusterError as error:
        raise with_checkpoint(error, parameters.get("checkpoint")) from error
    finally:
        pool.close()
    status = found.status._replace(reason=f"{found.status.reason} {_remark(pool)}")
    return replace(found, status=status, traffic=pool.traffic)


def _remark(pool: Pool) -> str:
    traffic = pool.traffic
    each = readable((traffic.sent + traffic.received) / max(traffic.rounds, 1))
    updates = pool.local_updates
    n_shards = len(pool.shards)
    local = "" if updates is None else f", {updates} local update{'s' * (updates > 1)} a round"
    many = "a shard" if pool.moved == 1 else f"{pool.moved} shards"
    moved = f"; {many} moved to another worker" if pool.moved else ""
    return (
        f"On {n_shards} shard{'s' * (n_shards > 1)}{local}: {traffic.rounds} rounds with {each} "
        f"each, {100 * traffic.share:.0f} % of their time communication{moved}."
    )
