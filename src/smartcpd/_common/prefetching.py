"""Reading ahead: the next item is loaded in the background while this one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def prefetched(keys: Iterable[K], load: Callable[[K], T]) -> Iterator[tuple[K, T]]:
    """Each key with what ``load`` returns for it, in order, one of them ahead of its use.

    At most two are held at a time: the one in use and the next. An error while loading comes up
    where that key would; leaving the loop early waits for what is being loaded, and drops it.
    """
    remaining = iter(keys)
    with ThreadPoolExecutor(1, thread_name_prefix="smartcpd-reader") as pool:
        ahead = _submitted(pool, remaining, load)
        while ahead is not None:
            key, future = ahead
            loaded = future.result()
            ahead = _submitted(pool, remaining, load)
            yield key, loaded
            del loaded, future  # otherwise the next one would be the third in memory


def _submitted(
    pool: ThreadPoolExecutor, keys: Iterator[K], load: Callable[[K], T]
) -> tuple[K, Future[T]] | None:
    for key in keys:
        return key, pool.submit(load, key)
    return None
