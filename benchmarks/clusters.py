"""Clusters of processes on this machine, and fits on them that are watched from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from smartcpd import SmartCPD, SparseTensor, datasets
from smartcpd.distributed import Cluster
from smartcpd.partitions import PartitionedTensor, write_tensor

SHAPE, RANK = (6186, 24, 77, 32), 10
N_EVENTS, QUICK_EVENTS = 6_100_000, 600_000


class Watched(NamedTuple):
    """A fit, its seconds on the clock on the wall, and the loss at each of its reports."""

    fit: Any
    seconds: float
    path: list[tuple[float, float]]

    def until(self, loss: float) -> float:
        """Seconds to the first report of a loss that is at most this."""
        return next(seconds for seconds, seen in self.path if seen <= loss)


def counts(quick: bool) -> SparseTensor:
    """Planted counts of the paper's Chicago size, about 5.3 M nonzeros."""
    return datasets.events(SHAPE, RANK, QUICK_EVENTS if quick else N_EVENTS, random_state=0).data


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """A client of so many processes of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def on_disk(X: SparseTensor) -> Iterator[PartitionedTensor]:
    with TemporaryDirectory() as folder:
        # Small ones, so that also a quick run has enough for two workers.
        yield write_tensor(Path(folder) / "counts.parts", X, part_bytes=X.nbytes // 16)


def watched(X: Any, client: Any = None, callback: Any = None, **settings: Any) -> Watched:
    """A fit with one thread a process."""
    path: list[tuple[float, float]] = []
    began = time.perf_counter()

    def observe(report: Any) -> Any:
        # Rows of more components than asked for are no models of this rank.
        if not report.record.phase.endswith("components"):
            path.append((time.perf_counter() - began, report.record.loss))
        return callback is not None and callback(report)

    fit = SmartCPD(
        RANK, "poisson", random_state=0, n_threads=1, client=client, callback=observe, **settings
    ).fit(X)
    return Watched(fit, time.perf_counter() - began, path)


def warm(client: Any) -> None:
    """Have everything loaded that is compiled."""
    small = datasets.events((60, 24, 20, 10), RANK, 20_000, random_state=0).data
    watched(small)
    halves = [datasets.events((60, 24, 20, 10), RANK, 20_000, random_state=k).data for k in (0, 1)]
    watched(halves, Cluster(client, local_updates=1))
