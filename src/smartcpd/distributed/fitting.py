"""A fit whose data is held or read by the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smartcpd._data.tiled.source import source_of
from smartcpd.distributed.arrays import shared_array
from smartcpd.distributed.cluster import as_cluster, parts_of
from smartcpd.distributed.tensor import ShardedTensor
from smartcpd.distributed.workers import Workers
from smartcpd.errors import ClusterError


def fit_on(client: Any, X: Any, parameters: dict[str, Any], fit: Callable[..., Any]) -> Any:
    """Fit data, without labels, on the workers of a cluster.

    An array on disk is read by all of them; anything else is shared out, and they hold it.
    """
    cluster = as_cluster(client)
    source = source_of(X)
    storage: Any
    workers: Workers
    if source is None:
        storage = ShardedTensor.on(cluster, parts_of(X))
        workers = storage.pool
    else:
        storage = shared_array(cluster.client, source, parameters)
        workers = storage.cluster
    try:
        found = fit(storage, **parameters)
    except ClusterError as error:
        raise ClusterError(f"{error} {_advice(parameters.get('checkpoint'))}") from error
    finally:
        workers.close()
    status = found.status._replace(reason=f"{found.status.reason} {workers.remark()}")
    return replace(found, status=status, traffic=workers.traffic)


def _advice(checkpoint: Any) -> str:
    """Return what to do after a cluster was lost."""
    if checkpoint is None:
        return "The work is lost; with checkpoint=path another client could go on with it."
    return f"The checkpoint is in {checkpoint}: go on from it with resume=True and another client."
