"""Stretches in which LLVM calls back to Python, which an interrupt would turn into a crash.

Python raises `KeyboardInterrupt` between any two of its instructions, also in a function that C++
has called. There the exception is lost, and LLVM goes on with what the function did not say: it
takes machine code that was not handed over for there.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

from numba.core.codegen import JitEngine

HELD = (signal.SIGTERM, signal.SIGINT)
CALLING_BACK = ("finalize_object", "get_function_address")
"""What asks LLVM for machine code: it looks for it in Python's cache first."""
LOST = re.compile(r"_get_(jit|wrapper)_address\(\) missing 1 required")
"""The error that is left of an interrupt which is lost in a function that Numba calls."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let signals wait until the end of something short; other threads never see any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[Callable[..., Any], int]] = []
    with ExitStack() as after:
        for number in HELD:
            handler = signal.getsignal(number)
            if not callable(handler):  # ignored, or answered by the operating system
                continue

            def note(which: int, frame: Any, handler: Callable[..., Any] = handler) -> None:
                came.append((handler, which))

            signal.signal(number, note)
            after.callback(signal.signal, number, handler)
        yield
    for answer, which in came:
        answer(which, None)


@contextmanager
def interrupts_recognised() -> Iterator[None]:
    """Raise as an interrupt what Numba makes of one that comes while it unpacks a function."""
    try:
        yield
    except TypeError as error:
        if LOST.match(str(error)):
            raise KeyboardInterrupt from None
        raise


def _guarded(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def guarded(*args: Any) -> Any:
        with uninterrupted():
            return call(*args)

    return guarded


for _name in CALLING_BACK:
    setattr(JitEngine, _name, _guarded(getattr(JitEngine, _name)))
