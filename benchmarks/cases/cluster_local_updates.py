"""Two local updates a round or two hundred: 5.3 M nonzeros on two workers, poisson, rank 10."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.clusters import counts, local_cluster, on_disk, warm, watched
from benchmarks.results import Method, Result, Row, Verdict
from smartcpd.distributed import Cluster


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "client= with two workers of a thread")
    found = {}
    with on_disk(counts(quick)) as folder, local_cluster(2) as client:
        warm(client)
        for updates in (2, 200, "auto"):
            found[updates] = watched(folder, Cluster(client, local_updates=updates))
            traffic = found[updates].fit.traffic_
            yield Row(
                "Fits",
                {
                    "local updates": str(updates),
                    "loss": f"{found[updates].fit.loss_:.8f}",
                    "rounds": traffic.rounds,
                    "MB a round": (traffic.sent + traffic.received) / traffic.rounds / 1e6,
                    "% communication": 100 * traffic.share,
                    "s": found[updates].seconds,
                },
            )
    few, many = found[2].fit.loss_, found[200].fit.loss_
    yield Verdict("difference of losses, %", 100 * abs(many / few - 1), 0.1, at_most=True)
