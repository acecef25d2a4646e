"""Signals at random moments of a run: how soon they are answered, and how the program ends.

``smartcpd fit`` on a large table gets SIGINT or SIGTERM at a moment from 0 to 30 s: while it
imports, reads, compiles, fits or writes. Every other pair of runs begins with an empty cache of
compiled code. Answered is the time to the first line on standard error that says so; a process that
a signal ends before Python has begun is answered by the system.
"""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.results import Result, Row, Spread, Verdict

COUNT, SECONDS, ROWS = 30, 30.0, 4_000_000
ANSWER = "Interrupted"
MOST_SECONDS = 240


@dataclass(frozen=True)
class Answer:
    """How a run took a signal."""

    moment: float
    number: signal.Signals
    answered: float
    ended: float
    code: int
    last: str
    traceback: bool
    saved: bool

    @property
    def is_right(self) -> bool:
        """Whether it was answered within a second, in order and with the right code."""
        codes = (128 + self.number, -self.number)
        return self.answered <= 1.0 and self.code in codes and not self.traceback


def table(path: Path, rows: int) -> None:
    """Write events of some structure: a hundred users of three kinds, pages and hours."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=rows)
    user = (rng.gamma(2.0, 8.0, rows).astype(int) + 30 * kind) % 300
    page = (rng.gamma(2.0, 10.0, rows).astype(int) + 70 * kind) % 400
    hour = (rng.normal(6 + 6 * kind, 2, rows).astype(int)) % 24
    day = rng.integers(200, size=rows)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["user", "page", "hour", "day"])
        out.writerows(zip(*(c.tolist() for c in (user, page, hour, day)), strict=True))


def trial(folder: Path, moment: float, number: signal.Signals, cold: bool) -> Answer | None:
    """Send the signal at that moment; nothing if the program had ended before."""
    out = folder / f"{moment:.3f}"
    words = ["fit", "events.csv", "--modes", "user,page,hour,day", "--rank", "12", "--out", out]
    environment = dict(os.environ)
    if cold:
        environment["NUMBA_CACHE_DIR"] = str(folder / f"cache-{moment:.3f}")
    process = subprocess.Popen(
        [sys.executable, "-m", "smartcpd", *map(str, words), "--n-init", "20", "--consensus"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: list[tuple[float, str]] = []

    def read() -> None:
        for line in process.stderr or ():
            lines.append((time.monotonic(), line.rstrip()))

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(moment)
    if process.poll() is not None:
        return None
    sent = time.monotonic()
    process.send_signal(number)
    code = process.wait(MOST_SECONDS)
    ended = time.monotonic() - sent
    reader.join()
    answered = [when - sent for when, line in lines if ANSWER in line and when >= sent]
    before = [line for when, line in lines if when < sent]
    return Answer(
        moment,
        number,
        min([ended if code < 0 else np.inf, *answered]),
        ended,
        code,
        before[-1][:40] if before else "starting",
        any("Traceback" in line for _, line in lines),
        (out / "model.json").exists(),
    )


def run(quick: bool = False) -> Iterator[Result]:
    rng = np.random.default_rng(7)
    count, rows = (6, 400_000) if quick else (COUNT, ROWS)
    found: list[Answer] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table(folder / "events.csv", rows)
        moments = rng.uniform(0.0, SECONDS, count)
        moments[: count // 6] = rng.uniform(0.0, 1.5, count // 6)  # imports are short, and matter
        for k, moment in enumerate(moments.tolist()):
            number = signal.SIGTERM if k % 2 else signal.SIGINT
            answer = trial(folder, moment, number, cold=k % 4 >= 2)
            if answer is None:
                continue
            found.append(answer)
            yield Row(
                "Signals",
                {
                    "after, s": round(moment, 2),
                    "signal": number.name,
                    "amid": answer.last,
                    "answered, s": round(answer.answered, 3),
                    "ended, s": round(answer.ended, 2),
                    "exit code": answer.code,
                    "model saved": answer.saved,
                    "traceback": answer.traceback,
                },
            )
    right = sum(answer.is_right for answer in found)
    yield Row(
        "In all",
        {
            "answered within 1 s, right code, no traceback": f"{right} of {len(found)}",
            "seconds to the answer": Spread.of([a.answered for a in found]),
            "seconds to the end": Spread.of([a.ended for a in found]),
        },
    )
    yield Verdict("signals answered rightly, share", right / len(found), 1.0)
