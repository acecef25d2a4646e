"""A fit on a Dask cluster: how it goes, what is sent, and how long it would take for more data.

Without an argument the cluster is two processes of one thread on this machine, and the data 2.4
million planted counts. With the address of a scheduler (tcp://host:8786), its workers are used;
they need smartcpd, and the folder of the data must be one that all of them can read.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from smartcpd import SmartCPD, datasets
from smartcpd.partitions import PartitionedTensor, write_tensor

SHAPE, RANK, N_EVENTS = (6186, 24, 77, 32), 10, 2_600_000
NONZEROS = (10**9, 10**10, 10**11)
WORKERS = (8, 64, 512)
SHARE = 0.2
"""Of the time that communication may take; beyond, workers make more updates on their own."""


def echo(payload: np.ndarray) -> np.ndarray:
    return payload


@dataclass(frozen=True)
class Costs:
    """What was measured: seconds, in all that follows."""

    start: float
    """For a sample, which does not grow with the data."""
    entry: float
    """Of a worker, for a nonzero in a pass."""
    passes: int
    latency: float
    """Of a question and its answer."""
    byte: float
    """Of sending it there and back."""
    bytes_a_worker: float
    """That a round sends to a worker and back."""

    def round_trip(self, workers: int) -> float:
        """Sending to all workers; the client has one connection to the network."""
        return self.latency + workers * self.bytes_a_worker * self.byte

    def fit(self, nonzeros: int, workers: int) -> float:
        """As many passes as were needed here; each round one, or more if sending takes too long."""
        update = nonzeros / workers * self.entry
        least = (1 / SHARE - 1) * self.round_trip(workers)
        updates = max(1, math.ceil(least / update))
        sending = self.passes / updates * self.round_trip(workers)
        return self.start + self.passes * update + sending


def measured(client: Client, fit: SmartCPD, X: PartitionedTensor) -> Costs:
    traffic, n_workers = fit.traffic_, len(client.scheduler_info()["workers"])
    entry = traffic.computed / (traffic.rounds * X.nnz / n_workers)
    times = {}
    for size in (1, 2_000_000):
        payload = np.zeros(size, np.uint8)
        client.submit(echo, payload, pure=False).result()
        began = time.perf_counter()
        for _ in range(5):
            client.submit(echo, payload, pure=False).result()
        times[size] = (time.perf_counter() - began) / 5
    byte = max(times[2_000_000] - times[1], 1e-6) / 2_000_000 / 2
    sent = (traffic.sent + traffic.received) / traffic.rounds / n_workers
    return Costs(fit.history_[0].time, entry, traffic.rounds, times[1], byte, sent)


def describe(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def main() -> None:
    with ExitStack() as stack:
        if len(sys.argv) > 1:
            client = stack.enter_context(Client(sys.argv[1]))
        else:
            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        print(
            f"Cluster: {len(client.scheduler_info()['workers'])} workers at "
            f"{client.scheduler_info()['address']}"
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=Path.cwd())))
        counts, _ = datasets.events(SHAPE, RANK, N_EVENTS, random_state=0)
        X = write_tensor(folder / "counts.parts", counts, part_bytes=1_000_000)
        print(
            f"Data:    {X.nnz:,} nonzeros in {X.n_parts} parts, "
            f"{X.bytes_on_disk / 1e6:.0f} MB on disk"
        )
        # Once to load compiled code, once to measure.
        SmartCPD(RANK, "poisson", random_state=0, max_epochs=3, client=client).fit(X)
        began = time.perf_counter()
        fit = SmartCPD(RANK, "poisson", random_state=0, client=client).fit(X)
        print(f"Fit:     loss {fit.loss_:.7f} after {time.perf_counter() - began:.1f} s")
        for row in fit.history_[:: max(1, len(fit.history_) // 8)]:
            print(f"         {row.time:6.1f} s  {row.loss:.7f}  {row.phase}")
        print(f"         {fit.status_.reason}")
        costs = measured(client, fit, X)
    report(costs)


def report(costs: Costs) -> None:
    print(
        f"\nMeasured: {costs.entry * 1e9:.0f} ns a nonzero and pass on a worker, "
        f"{costs.passes} passes;"
    )
    print(
        f"          {costs.latency * 1e3:.1f} ms a round trip, {1e-6 / costs.byte:.0f} MB/s, "
        f"{costs.bytes_a_worker / 1e6:.2f} MB a worker and round"
    )
    print("\nExpected from that, for modes of the same lengths:")
    print("nonzeros " + "".join(f"{w:>9} workers" for w in WORKERS))
    for nonzeros in NONZEROS:
        times = [describe(costs.fit(nonzeros, workers)) for workers in WORKERS]
        print(f"{nonzeros:8.0e} " + "".join(f"{text:>17}" for text in times))


if __name__ == "__main__":
    main()
