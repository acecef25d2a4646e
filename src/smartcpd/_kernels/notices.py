"""What is said about compilation: that it began, and in the end what it took."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from smartcpd._kernels.kept_code import keeps_for_others

_log = logging.getLogger("smartcpd.compilation")


class Compilation:
    """A count of the functions that were compiled since it was last told."""

    def __init__(self) -> None:
        self.n = 0
        self.seconds = 0.0
        self._announced = False
        self._lock = threading.Lock()
        self._running = 0
        self._since = self._past = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time inside as that of compilation; that of several threads counts once."""
        with self._lock:
            if not self._running:
                self._since = time.perf_counter()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._past += time.perf_counter() - self._since

    @property
    def so_far(self) -> float:
        """Seconds of this process that went by while something was compiled or loaded."""
        with self._lock:
            now = time.perf_counter() - self._since if self._running else 0.0
            return self._past + now

    def announce(self) -> None:
        """Say that compilation begins, which takes seconds and looks as if nothing happened."""
        if not self._announced:
            self._announced = True
            later = "later runs find it done" if keeps_for_others() else "no folder can keep it"
            self._say(f"compiling what this kind of problem needs ({later}) ...")

    def took(self, name: str, seconds: float) -> None:
        """Count a function that was not on disk, with the seconds until it was there."""
        self.n += 1
        self.seconds += seconds
        _log.info("compiled %s in %.2f s", name, seconds)

    def tell(self) -> None:
        """Say what was compiled, if it was announced, and begin to count anew."""
        if self._announced:
            functions = "1 function was" if self.n == 1 else f"{self.n} functions were"
            self._say(f"{functions} compiled in {self.seconds:.1f} s.")
        self.n, self.seconds, self._announced = 0, 0.0, False

    def _say(self, sentence: str) -> None:
        # A warning, since Python then writes it to standard error in a program that has not said
        # what to do with logs.
        _log.warning("smartcpd: %s", sentence)


compilation = Compilation()
"""The compilation of this process."""


def working_clock() -> float:
    """Return the seconds of a clock that stands still while something is compiled."""
    return time.perf_counter() - compilation.so_far
