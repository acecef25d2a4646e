"""A Dask client together with the settings of fits on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smartcpd._common.parameters import check_integer
from smartcpd.errors import IncompatibleError, InvalidParameterError, MissingExtraError
from smartcpd.partitions.held import held_parts
from smartcpd.partitions.tensor import PartitionedTensor


@dataclass(frozen=True)
class Cluster:
    """A Dask client, with settings for the fits that run on it.

    Parameters
    ----------
    client : distributed.Client
        The connection to the scheduler.
    local_updates : "auto" or int
        Updates that workers make on their own before what they found is put together. "auto"
        measures the first rounds and takes as many as keep communication below a fifth of the time,
        a power of two; the number is in ``status_``. With a number, the same seed and shards give
        the same bits.
    shards : int, optional
        Into how many pieces a partitioned folder is divided, each held by one worker; as many as
        there are workers by default.

    Examples
    --------
    A cluster of one worker in this process; on yours it is ``Client("tcp://host:8786")``.

    >>> from distributed import Client
    >>> from smartcpd import datasets, decompose, read, write
    >>> from smartcpd.distributed import Cluster
    >>> X, _ = datasets.events((10, 8, 6), rank=1, n_events=200, random_state=0)
    >>> write("events.parts", X)
    >>> client = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None)
    >>> cluster = Cluster(client, local_updates=4)
    >>> decompose(read("events.parts"), 1, "poisson", client=cluster, random_state=0)
    CPModel(shape=10x8x6, rank=1, loss=poisson)
    >>> client.close()
    """

    client: Any
    local_updates: int | str = "auto"
    shards: int | None = None

    def __post_init__(self) -> None:
        if self.local_updates != "auto":
            check_integer("local_updates", self.local_updates, at_least=1)
        if self.shards is not None:
            check_integer("shards", self.shards, at_least=1)


def as_cluster(client: Any) -> Cluster:
    """Return a cluster for a Dask client, or the cluster that was given."""
    cluster = client if isinstance(client, Cluster) else Cluster(client)
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("distributed", "cluster", "Fitting on a cluster") from None
    if not isinstance(cluster.client, Client):
        raise InvalidParameterError(
            f"client must be a distributed.Client or a Cluster; got {type(client).__name__}."
        )
    if cluster.client.asynchronous:
        raise InvalidParameterError(
            "client is asynchronous; make it with Client(..., asynchronous=False)."
        )
    return cluster


def parts_of(X: Any) -> PartitionedTensor:
    """Return what a cluster can share out: a partitioned folder, or a list of tensors."""
    if isinstance(X, PartitionedTensor):
        return X
    if isinstance(X, list | tuple):
        return held_parts(X)
    raise IncompatibleError(
        f"client= shares out a partitioned folder, or a list of tensors that follow each other "
        f"along mode 0; got {type(X).__name__}. Write it with smartcpd.write('x.parts', X) and "
        "pass smartcpd.read('x.parts')."
    )
