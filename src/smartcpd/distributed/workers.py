"""The workers of a cluster, as one fit uses them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from smartcpd.distributed.traffic import Traffic
from smartcpd.errors import ClusterError

NO_WORKERS = 60.0
"""Seconds to wait for a worker when all are gone."""
LOOK = 0.5
"""Seconds between two checks of what workers are doing."""


class Workers:
    """The workers that a fit begins with, and what it exchanges with them."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.traffic = Traffic()
        self.initial = workers_of(client)
        """What the scheduler says of each worker, by its address."""
        self.count = len(self.initial)
        self.n_threads = min(int(worker["nthreads"]) for worker in self.initial.values())
        """Number of threads that every worker has."""

    def remark(self) -> str:
        """Return the sentence that the status of a fit says about its workers."""
        raise NotImplementedError

    def close(self) -> None:
        """Have workers let go of what they hold for the fit."""


def workers_of(client: Any) -> dict[str, dict[str, Any]]:
    """Return the workers by address; wait for some if all are gone."""
    until = time.monotonic() + NO_WORKERS
    while True:
        check_running(client)
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


def check_running(client: Any) -> None:
    """Raise an error if the scheduler is gone."""
    if client.status != "running":
        address = client.scheduler.address if client.scheduler else "closed by its client"
        raise ClusterError(f"The scheduler of the cluster ({address}) is gone.")


def least_memory(workers: Iterable[dict[str, Any]]) -> int | None:
    """Return the bytes of memory of the smallest worker; None if none has a limit."""
    return min((int(w["memory_limit"]) for w in workers if w.get("memory_limit")), default=None)
