"""Fits on a cluster while workers are killed or stand still, its scheduler or its client goes.

With fixed numbers of shards and local updates a fit that lost workers ends with the bits of an
undisturbed one; one whose scheduler or client is gone ends with an error that says so. Without a
number of shards it is that of the workers, which another fit may find changed.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import distributed
import numpy as np
from ledger import Ledger

from smartcpd import SmartCPD, datasets
from smartcpd.distributed import Cluster
from smartcpd.errors import ClusterError
from smartcpd.partitions import write_tensor

PATIENCE = 60.0
"""Seconds in which a worker is replaced."""
PAUSE = 20.0
WORKERS = 2


def local() -> Any:
    return distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )


def fitted(client: Any, X: Any, seed: int, callback: Any = None) -> Any:
    cluster = Cluster(client, local_updates=2, shards=WORKERS)
    return SmartCPD(3, "poisson", random_state=seed, client=cluster, callback=callback).fit(X)


class Trial:
    """One cluster, and what is done to it."""

    def __init__(self, client: Any, X: Any, ledger: Ledger) -> None:
        self.client, self.X, self.ledger = client, X, ledger

    def undisturbed(self, seed: int) -> tuple[Any, int]:
        """A fit, and how many rows its history has."""
        rows = [0]

        def count(report: Any) -> None:
            rows[0] += 1

        return fitted(self.client, self.X, seed, count), rows[0]

    def disturbed(self, seed: int, chance: random.Random) -> bool:
        """Kill or pause a worker at a random row of the history; say whether it came back."""
        whole, rows = self.undisturbed(seed)
        row, how = chance.randrange(rows), chance.choice(["kill", "kill", "kill", "pause"])
        seen, pids = [0], list(self.client.run(os.getpid).values())
        victim = chance.choice(pids)

        def strike(report: Any) -> None:
            if seen[0] == row:
                time.sleep(chance.uniform(0, 0.02))
                os.kill(victim, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                if how == "pause":
                    threading.Timer(PAUSE, resumed, [victim]).start()
            seen[0] += 1

        found = fitted(self.client, self.X, seed, strike)
        self.ledger.count(f"workers: {how}")
        repeat = f"{how} at row {row} of {rows}, random_state={seed}"
        pairs = zip(found.factors_, whole.factors_, strict=True)
        same = all(np.array_equal(a, b) for a, b in pairs)
        apart = abs(found.loss_ / whole.loss_ - 1)
        self.ledger.expect(same, repeat, f"other bits; the loss is another by {apart:.2g}")
        resumed(victim)
        try:
            self.client.wait_for_workers(WORKERS, timeout=PATIENCE)
        except TimeoutError:  # Dask did not start another, which is Dask's to promise
            self.ledger.count("clusters that stayed a worker short")
            return False
        return True

    def two_at_once(self, seed: int) -> None:
        """Two fits from two threads, which give what each gives alone."""
        alone = [self.undisturbed(seed + k)[0].loss_ for k in range(2)]
        with ThreadPoolExecutor(2) as pool:
            tasks = [pool.submit(fitted, self.client, self.X, seed + k) for k in range(2)]
            both = [task.result(timeout=300).loss_ for task in tasks]
        self.ledger.count("two fits at once")
        self.ledger.expect(alone == both, f"two at once from {seed}", f"{alone} became {both}")


def resumed(pid: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return


def gone(X: Any, what: str, row: int, ledger: Ledger) -> None:
    """The scheduler or the client goes away in the middle of a fit."""
    with local() as cluster, distributed.Client(cluster) as client:
        seen = [0]

        def strike(report: Any) -> None:
            if seen[0] == row:
                (cluster if what == "scheduler" else client).close()
            seen[0] += 1

        try:
            fitted(client, X, 0, strike)
            ledger.expect(seen[0] <= row, f"{what} gone at row {row}", "the fit went on")
        except ClusterError:
            pass
        except BaseException as error:
            ledger.fail(f"{what} gone at row {row}", repr(error))
    ledger.count(f"{what} gone")


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Disturb so many fits."""
    warnings.simplefilter("ignore")
    until = time.monotonic() + seconds
    counts = datasets.events((200, 40, 30), 3, 20_000, random_state=1).data
    X = write_tensor(folder / "x.parts", counts, part_bytes=20_000)
    chance = random.Random(str(seed))
    for what in ("scheduler", "client"):
        gone(X, what, chance.randrange(1, 10), ledger)
    number = 0
    while number < count and time.monotonic() < until:
        with local() as cluster, distributed.Client(cluster) as client:
            trial, whole = Trial(client, X, ledger), True
            if number == 0:
                trial.two_at_once(seed)
            while whole and number < count and time.monotonic() < until:
                whole = trial.disturbed(seed + number, random.Random(f"{seed} {number}"))
                number += 1
