"""The number of threads that work on a fit, and a limit of one for linear algebra."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import numba
from threadpoolctl import ThreadpoolController

from smartcpd.errors import InvalidParameterError

_lost_threads = False
"""Whether this process was forked from one whose threads had started, which it does not have."""


def _after_fork() -> None:
    global _lost_threads
    _lost_threads = bool(getattr(numba.np.ufunc.parallel, "_is_initialized", True))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def resolve(n_threads: int | None) -> int:
    """The number of threads to use: all that Numba has, or what the user asked for.

    It is 1 in a process that was forked from one with threads: GNU's OpenMP would end it. Results
    do not depend on the number.
    """
    available = 1 if _lost_threads else int(numba.config.NUMBA_NUM_THREADS)
    if n_threads is None:
        return available
    if not isinstance(n_threads, int) or n_threads < 1:
        raise InvalidParameterError(
            f"n_threads must be at least 1, or None for all; got {n_threads!r}."
        )
    return min(int(n_threads), available)


@cache
def _launch() -> None:
    """Start Numba's threads as ones that soon sleep while they wait for each other.

    OpenMP's threads spin by default: when another program holds a core, each of the thousands of
    short waits of a fit then costs a slice of the scheduler's time, and two threads were measured
    ten times slower than one. Sleeping at once costs half of what a second thread gains on a quiet
    machine. The setting is GNU's, and is read once, when the threads start.
    """
    name = "GOMP_SPINCOUNT"
    if name in os.environ or "OMP_WAIT_POLICY" in os.environ:
        return
    os.environ[name] = "10000"
    try:
        numba.get_num_threads()
    finally:
        del os.environ[name]


@cache
def _libraries(with_scipy: bool) -> ThreadpoolController:
    """Find the linear algebra libraries of this process. SciPy brings one of its own when it is
    imported; looking for them takes milliseconds.
    """
    return ThreadpoolController()


@contextmanager
def limited_to(n_threads: int) -> Iterator[None]:
    """Let compiled loops share ``n_threads`` threads; each keeps its matrix products on its own
    thread.

    Products split among threads by the library itself would add up in another order, and change the
    last bits from one machine to the next.
    """
    with _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas"):
        _launch()
        before = numba.get_num_threads()
        numba.set_num_threads(n_threads)
        try:
            yield
        finally:
            numba.set_num_threads(before)


def share(work: Callable[[int, int], None], n_parts: int, n_threads: int) -> None:
    """Call ``work(first, end)`` for ranges that together are ``range(n_parts)``, a thread each.

    The work must leave the interpreter alone, as compiled loops do, and write to places of its own.
    """
    n_threads = min(n_threads, n_parts)
    if n_threads <= 1:
        work(0, n_parts)
        return
    ends = [n_parts * k // n_threads for k in range(n_threads + 1)]
    others = [_helpers(os.getpid()).submit(work, *pair) for pair in pairwise(ends[1:])]
    try:
        work(*ends[:2])
    finally:
        wait(others)
    for other in others:
        other.result()


@cache
def _helpers(process: int) -> ThreadPoolExecutor:
    """Return the threads that help the calling one; a forked process needs threads of its own."""
    return ThreadPoolExecutor(int(numba.config.NUMBA_NUM_THREADS), "smartcpd")
