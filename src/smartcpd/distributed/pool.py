"""Questions to all shards at once, whatever becomes of workers on the way."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from smartcpd.distributed.cluster import Cluster
from smartcpd.distributed.worker import Answer, Shard, answer, forget
from smartcpd.errors import ClusterError, InvalidParameterError
from smartcpd.memory import readable
from smartcpd.partitions.held import HeldParts
from smartcpd.partitions.tensor import PartitionedTensor
from smartcpd.storage.entries import Entries

PATIENCE = 3.0
"""Times as long as the others took, after which a shard is given to another worker too, ..."""
LEAST_PATIENCE = 5.0
"""... in seconds; loading and compiling for the first time are no reason to."""
LOOK = 0.5
"""Seconds between two looks at what workers are doing."""
NEEDED = 1.3
"""Memory of a worker, in shards."""
ATTEMPTS = 20
"""Times that one question is asked again before the cluster is given up."""
NO_WORKERS = 60.0
"""Seconds to wait for a worker when all are gone."""


@dataclass
class Traffic:
    """What went back and forth so far."""

    rounds: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    computed: float = 0.0
    """Of those, seconds in which the slowest worker of each round computed."""

    @property
    def share(self) -> float:
        """Of the time, that was not spent computing."""
        return 1 - self.computed / max(self.seconds, 1e-9)

    def since(self, before: Traffic) -> Traffic:
        return Traffic(*(a - b for a, b in zip(self._all, before._all, strict=True)))

    def copy(self) -> Traffic:
        return Traffic(*self._all)

    @property
    def _all(self) -> tuple[Any, ...]:
        return self.rounds, self.sent, self.received, self.seconds, self.computed


@dataclass
class Pool:
    """The workers of a fit, and which of them has which shard."""

    client: Any
    shards: list[Shard]
    n_threads: int
    """Of a worker."""
    entries: Callable[[Shard], list[Entries]] | None = None
    """What is sent to workers that cannot load a shard themselves."""
    homes: dict[int, str] = field(default_factory=dict)
    """Addresses of workers, by the numbers of shards."""
    traffic: Traffic = field(default_factory=Traffic)
    moved: int = 0
    """Shards that had to be given to another worker."""
    local_updates: int | None = None
    """Of the rounds that workers made on their own, if there were any."""

    @classmethod
    def of(cls, cluster: Cluster, X: PartitionedTensor) -> Pool:
        workers = _workers(cluster.client)
        n_shards = min(cluster.shards or len(workers), X.n_parts)
        held = isinstance(X, HeldParts)
        if held:
            n_shards = X.n_parts
        fit = uuid.uuid4().hex
        shards = []
        for number, parts in enumerate(_divided([p.nnz for p in X.manifest.parts], n_shards)):
            blocks = tuple(X.block(k) for k in parts)
            size = X.manifest.entry_bytes * sum(X.manifest.parts[k].nnz for k in parts)
            path = None if held else str(X.path.resolve())
            shards.append(Shard(fit, number, path, tuple(parts), blocks, size))
        _check_memory(shards, workers)
        n_threads = min(int(w["nthreads"]) for w in workers.values())
        entries = (lambda shard: [X.entries(k) for k in shard.parts]) if held else None
        pool = cls(cluster.client, shards, n_threads, entries)
        pool._settle(sorted(workers))
        return pool

    def ask(
        self,
        question: Callable[..., Any],
        arguments: Callable[[Shard], tuple[Any, ...]],
        state: Callable[[Shard], tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """The answers of all shards, in order.

        ``arguments`` are made for each shard; ``state`` makes those for a worker that does not have
        what earlier questions left with the worker before.
        """
        began = time.perf_counter()
        asked = {s.number: self._submit(s, question, arguments(s)) for s in self.shards}
        answers: dict[int, Answer] = {}
        tries = dict.fromkeys(asked, 0)
        took: list[float] = []
        present = set(_workers(self.client))
        while len(answers) < len(self.shards):
            for number in [n for n in asked if n not in answers]:
                shard = self.shards[number]
                found = self._finished(asked[number], shard)
                if found is None and self.homes[number] not in present:
                    found = ClusterError("The worker is gone.")
                if found is None:
                    if self._is_slow(time.perf_counter() - began, took, asked[number]):
                        self._move(shard, asked[number])
                        make = arguments if state is None else state
                        asked[number].append(self._task(shard, question, make(shard)))
                    continue
                if isinstance(found, Answer) and not (found.lacks_entries or found.lacks_state):
                    answers[number] = found
                    took.append(time.perf_counter() - began)
                    self._drop(asked[number])
                    continue
                tries[number] += 1
                if tries[number] > ATTEMPTS:
                    raise ClusterError(
                        f"Workers died {ATTEMPTS} times while they worked on {shard}. If it is too "
                        "large for their memory, use more workers or smaller parts."
                    )
                lacks_state = isinstance(found, Answer) and found.lacks_state
                make = state if lacks_state and state is not None else arguments
                with_entries = isinstance(found, Answer) and found.lacks_entries
                self._drop(asked[number])
                asked[number] = self._submit(shard, question, make(shard), with_entries)
            present = self._wait([f for n, fs in asked.items() if n not in answers for f in fs])
        self._count(began, [answers[s.number] for s in self.shards])
        return [answers[s.number].value for s in self.shards]

    def close(self) -> None:
        """Have workers let go of their shards."""
        from distributed import fire_and_forget

        if self._alive:
            # Without waiting: one of them may stand still.
            for worker in _workers(self.client):
                fire_and_forget(
                    self.client.submit(
                        forget, self.shards[0].fit, workers=[worker], pure=False, priority=10
                    )
                )

    @property
    def _alive(self) -> bool:
        return self.client.status == "running"

    def _settle(self, workers: Sequence[str]) -> None:
        """Shards without a home get one, those with the fewest first."""
        for shard in self.shards:
            if self.homes.get(shard.number) not in workers:
                if shard.number in self.homes:
                    self.moved += 1
                load = {w: sum(h == w for h in self.homes.values()) for w in workers}
                self.homes[shard.number] = min(workers, key=lambda w: load[w])

    def _submit(
        self,
        shard: Shard,
        question: Callable[..., Any],
        arguments: tuple[Any, ...],
        with_entries: bool = False,
    ) -> list[Any]:
        self._settle(sorted(_workers(self.client)))
        return [self._task(shard, question, arguments, with_entries)]

    def _task(
        self,
        shard: Shard,
        question: Callable[..., Any],
        arguments: tuple[Any, ...],
        with_entries: bool = False,
    ) -> Any:
        import warnings

        sent = self.entries(shard) if with_entries and self.entries is not None else None
        self.traffic.sent += _size(arguments) + _size(sent)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(
                answer,
                shard,
                question,
                arguments,
                self.n_threads,
                sent,
                workers=[self.homes[shard.number]],
                pure=False,
                retries=0,
            )

    def _finished(self, futures: list[Any], shard: Shard) -> Any:
        """The answer, None if there is none yet, or the error that a lost worker left."""
        problem = None
        for future in futures:
            if future.status == "finished":
                try:
                    found = future.result()
                except Exception as error:  # the worker is gone since
                    problem = error
                    continue
                if found.too_large:
                    raise ClusterError(
                        f"A worker has no memory left for {shard}. Use more workers or shards, or "
                        "workers with more memory."
                    )
                return found
            if future.status == "error":
                problem = self._judged(future)
            elif future.status in ("cancelled", "lost"):
                problem = ClusterError("lost")
        return problem if all(f.status != "pending" for f in futures) else None

    def _judged(self, future: Any) -> Exception:
        """An error of ours, or one that comes with the loss of a worker."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        error = future.exception()
        if isinstance(error, KilledWorker | CommClosedError | OSError):
            return error
        raise error

    def _is_slow(self, waited: float, took: list[float], futures: list[Any]) -> bool:
        others = len(took) >= (len(self.shards) + 1) // 2
        return (
            others
            and len(futures) == 1
            and waited > max(LEAST_PATIENCE, PATIENCE * float(np.median(took)))
        )

    def _move(self, shard: Shard, futures: list[Any]) -> None:
        """To the worker, other than the slow one, that has the fewest shards."""
        slow = self.homes[shard.number]
        workers = [w for w in sorted(_workers(self.client)) if w != slow] or [slow]
        load = {w: sum(h == w for h in self.homes.values()) for w in workers}
        self.homes[shard.number] = min(workers, key=lambda w: load[w])
        self.moved += 1

    def _wait(self, futures: list[Any]) -> set[str]:
        """Until one of them is done, or for a while; the workers that there are then."""
        from distributed import wait

        pending = [future for future in futures if future.status == "pending"]
        if not self._alive:
            raise _gone(self.client)
        if pending and len(pending) == len(futures):
            try:
                wait(pending, timeout=LOOK, return_when="FIRST_COMPLETED")
            except TimeoutError:
                return set(_workers(self.client))
            except Exception:  # cancelled, since the connection to the scheduler is lost
                if not self._alive:
                    raise _gone(self.client) from None
        return set(self.homes.values())

    def _drop(self, futures: list[Any]) -> None:
        for future in futures:
            if future.status == "pending":
                future.cancel()

    def _count(self, began: float, answers: list[Answer]) -> None:
        self.traffic.rounds += 1
        self.traffic.received += _size([a.value for a in answers])
        self.traffic.seconds += time.perf_counter() - began
        # Workers with several shards answer one after the other.
        busy: dict[str, float] = {}
        for shard, found in zip(self.shards, answers, strict=True):
            home = self.homes[shard.number]
            busy[home] = busy.get(home, 0.0) + found.seconds
        self.traffic.computed += max(busy.values())


def _workers(client: Any) -> dict[str, dict[str, Any]]:
    """Those that there are; waits for some if all are gone."""
    until = time.monotonic() + NO_WORKERS
    while True:
        if client.status != "running":
            raise _gone(client)
        try:
            workers = client.scheduler_info(n_workers=-1)["workers"]
        except TypeError:  # of versions before 2025
            workers = client.scheduler_info()["workers"]
        if workers:
            return workers
        if time.monotonic() > until:
            raise ClusterError(
                f"The cluster at {client.scheduler_info()['address']} has no workers; start some."
            )
        time.sleep(LOOK)


def _gone(client: Any) -> ClusterError:
    return ClusterError(
        f"The scheduler of the cluster ({client.scheduler.address if client.scheduler else '?'}) "
        "is gone."
    )


def _divided(counts: Sequence[int], n_shards: int) -> list[list[int]]:
    """Neighbouring parts for each shard, with about equally many entries."""
    ends = np.cumsum(counts)
    wanted = ends[-1] * np.arange(1, n_shards) / n_shards
    cuts = np.searchsorted(ends - np.asarray(counts) / 2, wanted).tolist()
    # No shard without a part.
    for k in range(len(cuts)):
        cuts[k] = min(max(cuts[k], k + 1), len(counts) - n_shards + k + 1)
    bounds = [0, *cuts, len(counts)]
    return [list(range(a, b)) for a, b in pairwise(bounds) if a < b]


def _check_memory(shards: Sequence[Shard], workers: dict[str, dict[str, Any]]) -> None:
    limits = [int(w["memory_limit"]) for w in workers.values() if w.get("memory_limit")]
    if not limits:
        return
    each = -(-len(shards) // len(workers))
    largest = max(shards, key=lambda shard: shard.nbytes)
    if NEEDED * each * largest.nbytes > min(limits):
        many = f"{each} shards of the size of {largest} do" if each > 1 else f"{largest} does"
        raise InvalidParameterError(
            f"{many[:1].upper()}{many[1:]} not fit in a worker's {readable(min(limits))} of "
            "memory. Use more workers, or workers with more memory."
        )


def _size(value: Any) -> int:
    """Bytes of the arrays in something."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    if isinstance(value, Entries):
        return _size(value.columns) + _size(value.values)
    return 0
