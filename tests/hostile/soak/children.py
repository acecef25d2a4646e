"""Child processes by fork: a life of a fit that can be killed, without the price of an import.

The parent has everything compiled and loaded, and never starts a thread; a child reports by a file.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def child(work: Callable[[], Any], said: Path) -> int:
    """Start a child that does some work, and return its process id.

    Its exit code is 0, 3 after an error of any kind (told in the file ``said``), or its own.
    """
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 0
    try:
        work()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        said.write_text(traceback.format_exc())
        code = 3
    finally:
        os._exit(code)


def ended(pid: int, seconds: float) -> int | None:
    """Wait so long for a child; return its exit code, negative for a signal, None if it runs."""
    until = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(min(0.001, max(seconds, 0)))


def stopped(pid: int, number: int, patience: float) -> int | None:
    """Send a signal and wait; None, after a kill, if the child did not end in time."""
    os.kill(pid, number)
    code = ended(pid, patience)
    if code is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return code
