"""A worker killed at ten random moments of a fit on two of them: 5.3 M nonzeros, poisson, rank 10.

Each time a fit of its own, and SIGKILL to one of its workers after a random share of the seconds
that an undisturbed fit takes.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator

from benchmarks.clusters import counts, local_cluster, on_disk, warm, watched
from benchmarks.results import Method, Result, Row, Verdict
from smartcpd.distributed import Cluster

KILLS = 10


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "client= with two workers of a thread, 2 local updates")
    chance, worst = random.Random(0), 0.0
    with on_disk(counts(quick)) as folder, local_cluster(2) as client:
        cluster = Cluster(client, local_updates=2, shards=2)
        warm(client)
        whole = watched(folder, cluster)
        for _ in range(KILLS):
            client.wait_for_workers(2)
            after = chance.uniform(0, whole.seconds)
            victim = chance.choice(sorted(client.run(os.getpid).values()))
            timer = threading.Timer(after, os.kill, (victim, signal.SIGKILL))
            timer.start()
            again = watched(folder, cluster)
            timer.cancel()
            timer.join()
            difference = 100 * abs(again.fit.loss_ / whole.fit.loss_ - 1)
            worst = max(worst, difference)
            yield Row(
                "Killed",
                {
                    "after, s": after,
                    "s": again.seconds,
                    "loss off by, %": difference,
                    "shard moved": "moved" in again.fit.status_.reason,
                },
            )
    yield Row("Undisturbed", {"s": whole.seconds, "loss": f"{whole.fit.loss_:.8f}"})
    yield Verdict("largest difference of losses, %", worst, 0.1, at_most=True)
