"""The part of a fit that runs on workers: each holds shards, and answers questions about them.

A lost worker can be replaced: entries are loaded anew, and rows of factors come with the next
question.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._data.event_sums import Sum
from smartcpd._data.storage.entries import Entries, smallest
from smartcpd._data.storage.events import Events
from smartcpd.partitions.row_range import RowRange
from smartcpd.partitions.tensor import EventSum, PartitionedTensor, near_events

HELD: dict[tuple[str, int], Held] = {}
"""What this process holds, by fit and number of the shard."""
LOCK = threading.Lock()
"""Held while a question is answered, since each may use all threads of the worker."""


@dataclass(frozen=True)
class Shard:
    """A piece of the data, described by as little as is needed to load it."""

    fit: str
    """The fit that the shard is held for."""
    number: int
    path: str | None
    """The path of the folder; None if the entries have to be sent."""
    parts: tuple[int, ...]
    row_ranges: tuple[RowRange, ...]
    """The rows of each part."""
    nbytes: int

    @property
    def row_range(self) -> RowRange:
        """The rows of all of them."""
        first = self.row_ranges[0]
        return RowRange(first.whole, first.mode, first.first, self.row_ranges[-1].last)

    def __str__(self) -> str:
        first, last = self.parts[0], self.parts[-1]
        return f"shard {self.number} (parts {first} to {last}, {self.nbytes / 1e6:,.0f} MB)"


@dataclass
class Held:
    """A shard in memory, and its rows of the factor of the mode that was divided."""

    shard: Shard
    events: list[Events]
    state: dict[str, np.ndarray] = field(default_factory=dict)
    """The arrays that the rounds of a solver keep on the worker from one round to the next."""


@dataclass(frozen=True)
class Answer:
    """The answer of a worker, and how long it took."""

    value: Any = None
    seconds: float = 0.0
    lacks_entries: bool = False
    """Whether the question has to be asked again, with the entries."""
    lacks_state: bool = False
    """Whether the question has to be asked again, with the state of the solver."""
    too_large: bool = False
    """Whether memory did not suffice."""


class LacksStateError(Exception):
    """A worker is asked to go on with something that it never began."""


def answer(
    shard: Shard,
    question: Callable[..., Any],
    arguments: tuple[Any, ...],
    n_threads: int,
    entries: list[Entries] | None = None,
) -> Answer:
    """Answer a question about a shard, which is loaded first if need be."""
    key = shard.fit, shard.number
    try:
        with LOCK, threads.limited_to(threads.resolve(n_threads)):
            began = time.perf_counter()
            held = HELD.get(key)
            if held is None:
                if shard.path is None and entries is None:
                    return Answer(lacks_entries=True)
                held = HELD[key] = Held(shard, _loaded(shard, entries))
            try:
                value = question(held, *arguments, threads.resolve(n_threads))
            except LacksStateError:
                return Answer(lacks_state=True)
            return Answer(value, time.perf_counter() - began)
    except MemoryError:
        HELD.pop(key, None)
        return Answer(too_large=True)


def forget(fit: str) -> None:
    """Drop what is held for a fit."""
    for key in [key for key in HELD if key[0] == fit]:
        del HELD[key]


def _loaded(shard: Shard, entries: list[Entries] | None) -> list[Events]:
    if entries is not None:
        return [near_events(e, b) for e, b in zip(entries, shard.row_ranges, strict=True)]
    assert shard.path is not None
    tensor = PartitionedTensor.open(shard.path)
    return [tensor.events(number) for number in shard.parts]


def within(shard: RowRange, row_range: RowRange) -> RowRange:
    """The rows of a part, counted within those of its shard."""
    first = row_range.first - shard.first
    return RowRange(shard.shape, shard.mode, first, first + row_range.last - row_range.first)


def summed(held: Held, wanted: EventSum, A: np.ndarray, n_threads: int) -> Sum:
    """Return the sum over the events of a shard, part after part, and its gradient."""
    whole = held.shard.row_range
    ranges = [within(whole, part) for part in held.shard.row_ranges]
    pairs = zip(ranges, held.events, strict=True)
    return wanted.joined(((r, wanted.over(e, r.take(A), n_threads)) for r, e in pairs), A)


def drawn(held: Held, counts: list[int], seeds: list[int], n: int) -> list[Entries]:
    """Draw so many entries of each part, as `PartitionedTensor.sample` does."""
    found = []
    for events, part, count, seed in zip(
        held.events, held.shard.row_ranges, counts, seeds, strict=True
    ):
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(len(events), count, replace=False, shuffle=False))
        some = events.at(chosen)
        columns, kind = list(some.indices), smallest(part.whole[part.mode])
        columns[part.mode] = columns[part.mode].astype(kind) + kind.type(part.first)
        found.append(Entries(columns, some.values, some.weights))
    return found
