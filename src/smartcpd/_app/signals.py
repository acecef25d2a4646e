"""The owner of SIGINT and SIGTERM, from the first moment of the program to its last.

Python runs a handler between two instructions of the main thread, which a compiler, a database or a
kernel may keep busy for long. A thread of its own therefore reads the numbers of signals as they
come and answers at once; the main thread gets a `KeyboardInterrupt` as soon as it can take one.
Some libraries swallow that, so whoever is at a good place to stop asks `heed` as well.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WATCHED = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))
AGAIN = 0.5
"""Seconds after which another signal is another wish, not an echo of the first."""
SOON = 0.05
"""Seconds after which an interrupt that a library has swallowed is raised again."""
ANSWER = "Interrupted: what was found is saved, then this ends; once more ends it at once."


class Signals:
    """Answers signals, and remembers the first one.

    Attributes
    ----------
    asked : int or None
        The number of the signal that asked the program to end.
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._since = 0.0
        self._saying = threading.Lock()
        self._held = False
        self._echoes = 0
        self._pipe: tuple[int, int] | None = None

    @property
    def code(self) -> int:
        """The exit code of a program that a signal has ended."""
        return 128 + (self.asked or signal.SIGINT)

    def heed(self, *_: Any) -> None:
        """Raise `KeyboardInterrupt` if a signal has come, whoever swallowed it before."""
        if self.asked is not None and not self._held:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Finish something short that must not be cut in two, such as the saving of a model."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Answer signals while this lasts; afterwards they end the process without a word."""
        if self._pipe is not None or threading.current_thread() is not threading.main_thread():
            yield
            return
        self.asked, self._since, self._echoes = None, 0.0, 0
        self._pipe = os.pipe()
        if hasattr(os, "set_blocking"):  # Windows has it since Python 3.12, and does without
            os.set_blocking(self._pipe[1], False)
        signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in WATCHED:
            signal.signal(number, self._raise)
        unraisable, sys.unraisablehook = sys.unraisablehook, self._swallowed
        threading.Thread(target=self._answer, args=(self._pipe[0],), daemon=True).start()
        try:
            yield
        finally:
            for number in WATCHED:
                signal.signal(number, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            sys.unraisablehook = unraisable
            os.close(self._pipe[1])  # which ends the thread
            self._pipe = None

    def _raise(self, number: int, frame: Any) -> None:
        """Interrupt the main thread, which may be quicker than the other to answer."""
        self._say(number)
        self.heed()

    def _say(self, number: int) -> None:
        """Answer the first signal, once."""
        if self.asked is None:
            self.asked = number
        if not self._since and self._saying.acquire(timeout=AGAIN):  # the other may be at it
            if not self._since:
                self._since = time.monotonic()
                erase = "\r\033[K" if os.isatty(2) else ""
                os.write(2, f"{erase}{ANSWER}\n".encode())
            self._saying.release()

    def _answer(self, pipe: int) -> None:
        """Answer each signal as it comes, in a thread that nothing keeps busy."""
        while found := os.read(pipe, 1):
            number = found[0]
            if self._echoes:
                self._echoes -= 1
            elif number not in WATCHED:
                continue
            elif not self._since:
                self._say(number)
            elif time.monotonic() - self._since > AGAIN and not self._held:
                os._exit(128 + number)
        os.close(pipe)

    def _swallowed(self, what: Any) -> None:
        """Raise an interrupt again that came where none can be raised, as in a callback from C."""
        if not issubclass(what.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(what)
            return
        self._echoes += 1
        again = threading.Timer(SOON, _thread.interrupt_main)
        again.daemon = True
        again.start()


signals = Signals()
"""The owner of the signals of this process."""
