"""Child processes by fork: a life of a fit that can be killed, without the price of an import.

The parent has everything compiled and loaded, and never starts a thread; a child reports by a file.
Children are waited for by a clock that stands still while they wait for a processor: how long that
takes on a busy machine says nothing about them.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

INTERRUPT = {signal.SIGINT}


def child(work: Callable[[], Any], said: Path) -> int:
    """Start a child that does some work, and return its process id.

    Its exit code is 0, 3 after an error of any kind (told in the file ``said``), or its own.
    """
    sys.stdout.flush()
    # Python loses an interrupt that comes while it tidies up after a fork; it is kept back so long.
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
        return pid
    code = 0
    try:
        _take_interrupts()
        with open(stack_of(said), "w") as stack:
            faulthandler.register(signal.SIGUSR1, stack)
            work()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        said.write_text(traceback.format_exc())
        code = 3
    finally:
        os._exit(code)


def _take_interrupts() -> None:
    """Take interrupts from here on; one that came before ends the process, as nothing has begun."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def ended(pid: int, seconds: float) -> int | None:
    """Wait so long for a child; return its exit code, negative for a signal, None if it runs."""
    return timed(pid, seconds)[0]


def timed(pid: int, seconds: float) -> tuple[int | None, float]:
    """Wait like `ended`; return the seconds that it took as well."""
    waited = 0.0
    before, used = time.monotonic(), used_by(pid)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), waited
        now, so_far = time.monotonic(), used_by(pid)
        # What a child that could run did not get of a processor is not its fault.
        waited += so_far - used if is_ready(pid) else now - before
        before, used = now, so_far
        if waited >= seconds:
            return None, waited
        time.sleep(min(0.001, max(seconds, 0)))


def used_by(pid: int) -> float:
    """Return the seconds for which a process had a processor."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):  # it has ended, or this is another operating system
        return 0.0


def is_ready(pid: int) -> bool:
    """Tell whether a process runs or could run: it waits for nothing but a processor."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False


def stack_of(said: Path) -> Path:
    """Return the file that tells where a child was that did not answer."""
    return said.with_suffix(".stack")


def stopped(pid: int, number: int, patience: float, said: Path) -> int | None:
    """Send a signal and wait; None, after a kill, if the child did not end in time."""
    os.kill(pid, number)
    code = ended(pid, patience)
    if code is None:
        os.kill(pid, signal.SIGUSR1)
        time.sleep(1.0)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        said.write_text(f"no answer in {patience} s:\n{stack_of(said).read_text()}")
    return code
