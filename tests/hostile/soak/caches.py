"""The cache of compiled code: many at once, killed in the middle, another processor, no folder.

Each process compiles a loss in an empty cache, and says what it computed with it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ledger import Ledger

CODE = """
import numpy as np
from smartcpd import losses
loss = losses.get("huber(2)")
print(loss.values_at(np.arange(9.0), np.zeros(9)).sum(), loss.slopes_at(np.arange(9.0), np.ones(9)).sum())
"""  # noqa: E501
AT_ONCE = 4
PATIENCE = 120.0


def started(cache: Path | str, **more: str) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)} | more
    return subprocess.Popen(
        [sys.executable, "-c", CODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


def answer(process: subprocess.Popen[str]) -> str:
    """What a process printed, or how it failed."""
    out, err = process.communicate(timeout=PATIENCE)
    return out if process.returncode == 0 else f"exit {process.returncode}: {err[-1500:]}"


def at_once(cache: Path, chance: random.Random) -> list[str]:
    return [answer(process) for process in [started(cache) for _ in range(AT_ONCE)]]


def killed(cache: Path, chance: random.Random) -> list[str]:
    """Some are killed while they compile; whoever comes later is not hindered."""
    for _ in range(2):
        process = started(cache)
        time.sleep(chance.uniform(0.2, 3.0))
        process.send_signal(chance.choice([signal.SIGKILL, signal.SIGINT]))
        process.communicate(timeout=PATIENCE)
    return [answer(started(cache)) for _ in range(2)]


def another_processor(cache: Path, chance: random.Random) -> list[str]:
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    return [answer(started(cache, **more)) for more in (plain, {}, plain)]


def nowhere(cache: Path, chance: random.Random) -> list[str]:
    """The folder cannot be made: a file is in its place."""
    cache.write_text("a file")
    return [answer(started(cache)), answer(started("/proc/nowhere"))]


def damaged(cache: Path, chance: random.Random) -> list[str]:
    """Files of the cache are cut, or full of noise."""
    first = answer(started(cache))
    for file in cache.rglob("*.nb?"):
        content = file.read_bytes()
        kept = content[: chance.randrange(len(content))]
        file.write_bytes(kept if chance.random() < 0.5 else chance.randbytes(len(content)))
    return [first, answer(started(cache))]


TRIALS: tuple[Any, ...] = (at_once, killed, another_processor, nowhere, damaged)


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Try so many caches, each empty at first."""
    expected = answer(started(folder / "first"))
    ledger.expect(len(expected.split()) == 2, "alone", expected)
    until = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > until:
            break
        trial = TRIALS[(seed + number) % len(TRIALS)]
        answers = trial(folder / str(number), random.Random(f"{seed} {number}"))
        ledger.count(f"caches: {trial.__name__.replace('_', ' ')}")
        wrong = [each for each in answers if each != expected]
        ledger.expect(not wrong, f"{trial.__name__} number={number}", str(wrong))
