"""Questions to all shards at once, which survive the loss of workers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from smartcpd.distributed.cluster import Cluster
from smartcpd.distributed.heartbeats import Heartbeats
from smartcpd.distributed.inquiry import Arguments, Inquiry
from smartcpd.distributed.sharing import check_memory, lightest, shards_of
from smartcpd.distributed.traffic import size
from smartcpd.distributed.worker import Shard, answer, forget
from smartcpd.distributed.workers import LOOK, Workers, check_running, workers_of
from smartcpd.partitions.tensor import PartitionedTensor

PATIENCE = 3.0
"""A shard is given to another worker too after so many times as long as the others took."""
LEAST_PATIENCE = 5.0
"""Least number of seconds before that, since loading and compiling take a while at first."""


class Pool(Workers):
    """The workers of a fit, and which of them has which shard."""

    def __init__(self, cluster: Cluster, X: PartitionedTensor) -> None:
        """Divide a tensor into shards and give each to a worker."""
        super().__init__(cluster.client)
        self.cluster = cluster
        self.tensor = X
        self.shards = shards_of(X, cluster.shards or self.count)
        check_memory(self.shards, self.initial)
        self.heartbeats = Heartbeats()
        self.homes: dict[int, str] = {}
        """The address of the worker that has each shard, by the shard's number."""
        self.moved = 0
        """How many shards had to be given to another worker."""
        self.local_updates: int | None = None
        """Number of local updates a round at the end of the fit, if workers made any."""
        self.settle()

    def ask(
        self, question: Callable[..., Any], arguments: Arguments, state: Arguments | None = None
    ) -> list[Any]:
        """Return the answers of all shards, in order.

        ``arguments`` are made for each shard; ``state`` makes those for a worker that does not have
        what earlier questions left with the worker before.
        """
        began = time.perf_counter()
        asked = [Inquiry(self, shard, question, arguments, state) for shard in self.shards]
        for one in asked:
            one.ask(arguments)
        waiting, took = asked, []
        present = set(self.homes.values())
        while True:
            for one in waiting:
                one.look(present)
            now = time.perf_counter() - began
            took += [now for one in waiting if one.answer is not None]
            waiting = [one for one in waiting if one.answer is None]
            if not waiting:
                break
            for one in waiting:
                if self._is_silent(one) or (len(one.futures) == 1 and self._is_slow(now, took)):
                    one.ask_another()
            present = self._wait([future for one in waiting for future in one.futures])
        return self._counted(began, asked)

    def submit(self, inquiry: Inquiry, arguments: tuple[Any, ...], with_entries: bool) -> Any:
        """Return a future of the answer of the worker that has the shard."""
        check_running(self.client)
        shard = inquiry.shard
        sent = [self.tensor.entries(k) for k in shard.parts] if with_entries else None
        self.traffic.sent += size(arguments) + size(sent)
        task = (answer, shard, inquiry.question, arguments, self.n_threads, sent)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(*task, workers=[self.homes[shard.number]], pure=False)

    def settle(self) -> None:
        """Give a worker to every shard that has none yet, or whose worker is gone."""
        workers = sorted(workers_of(self.client))
        for shard in self.shards:
            home = self.homes.get(shard.number)
            if home not in workers:
                self.moved += home is not None
                self.homes[shard.number] = lightest(workers, self.homes)

    def move(self, shard: Shard) -> None:
        """Move a shard from a slow worker to the one of the others that has the fewest shards."""
        slow = self.homes[shard.number]
        others = self._others(slow)
        self.homes[shard.number] = lightest(others or [slow], self.homes)
        self.moved += 1

    def remark(self) -> str:
        n_shards, updates = len(self.shards), self.local_updates
        local = "" if updates is None else f", {updates} local update{'s' * (updates > 1)} a round"
        many = "a shard" if self.moved == 1 else f"{self.moved} shards"
        moved = f"; {many} moved to another worker" if self.moved else ""
        where = f"{n_shards} shard{'s' * (n_shards > 1)}{local}"
        return self.traffic.remark(where, f"communication{moved}")

    def close(self) -> None:
        """Have workers let go of their shards, without waiting: one of them may stand still."""
        from distributed import fire_and_forget

        if self.client.status != "running":
            return
        for worker in workers_of(self.client):
            task = self.client.submit(
                forget, self.shards[0].fit, workers=[worker], pure=False, priority=10
            )
            fire_and_forget(task)

    def _others(self, slow: str) -> list[str]:
        """Workers that could do what one of them does not, those without a sign of life last."""
        others = [worker for worker in sorted(workers_of(self.client)) if worker != slow]
        return [each for each in others if not self.heartbeats.is_silent(each)] or others

    def _is_silent(self, one: Inquiry) -> bool:
        """Whether the worker that was asked last stands still, and another one does not."""
        silent = self.heartbeats.is_silent
        if not silent(one.asked_of):
            return False
        return any(not silent(other) for other in self._others(one.asked_of))

    def _is_slow(self, waited: float, took: list[float]) -> bool:
        """Whether those that have not answered yet take much longer than most others did."""
        if len(took) < (len(self.shards) + 1) // 2:
            return False
        return waited > max(LEAST_PATIENCE, PATIENCE * float(np.median(took)))

    def _wait(self, futures: list[Any]) -> set[str]:
        """Wait until a future is done, or for a while; return the workers that are left then."""
        from distributed import wait

        check_running(self.client)
        pending = [future for future in futures if future.status == "pending"]
        # It takes too long, or was cancelled since the scheduler is lost, which the next line sees.
        with suppress(Exception):
            wait(pending, timeout=LOOK, return_when="FIRST_COMPLETED")
        workers = workers_of(self.client)
        self.heartbeats.note(workers)
        return set(workers)

    def _counted(self, began: float, asked: list[Inquiry]) -> list[Any]:
        """Return the values of the answers, and add them to the traffic."""
        answers = [one.answer for one in asked if one.answer is not None]
        values = [found.value for found in answers]
        busy: dict[str, float] = {}
        for one, found in zip(asked, answers, strict=True):
            # A worker with several shards answers for one after the other.
            home = self.homes[one.shard.number]
            busy[home] = busy.get(home, 0.0) + found.seconds
        self.traffic.received += size(values)
        self.traffic.add_round(began, max(busy.values()))
        return values
