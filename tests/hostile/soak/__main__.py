"""Attacks on every promise, for as long as wanted: ``python tests/hostile/soak PART ...``.

Each part is seeded and bounded: it ends after so many trials or seconds, prints what it tried, and
of every failure what repeats it. ``make soak`` runs all of them for about an hour, two at a time,
and ends with a table of what was tried.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from ledger import Ledger, table  # noqa: E402 - which is found by the line above

LANES = (
    {"fits": 1.0},
    {
        "files": 0.42,
        "kills": 0.22,
        "commands": 0.08,
        "file_system": 0.08,
        "processes": 0.08,
        "caches": 0.04,
        "clusters": 0.08,
    },
)
"""Parts that follow each other in a lane, with the share of the time that each has. Lanes run side
by side, one for each of two processors."""
PARTS = [part for lane in LANES for part in lane]


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000, help="trials of each part")
    parser.add_argument("--seconds", type=float, default=3600.0, help="in all")
    parser.add_argument("--log", type=Path, help="a file to which results are added, as JSON")
    asked = parser.parse_args()
    # A shell lets what it starts in the background ignore interrupts, and so would all children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if len(asked.parts) == 1:
        return attack(asked.parts[0], asked)
    with tempfile.TemporaryDirectory(prefix="soak-log-") as folder:
        log = asked.log or Path(folder) / "log"
        before = log.read_text().count("\n") if log.exists() else 0
        chosen = [[part for part in lane if part in (asked.parts or PARTS)] for lane in LANES]
        codes: list[int] = []
        lanes = [
            threading.Thread(target=follow, args=(parts, shares, asked, log, codes))
            for parts, shares in zip(chosen, LANES, strict=True)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        print(table(log.read_text().splitlines()[before:]), flush=True)
    return int(any(codes))


def follow(
    parts: list[str],
    shares: dict[str, float],
    asked: argparse.Namespace,
    log: Path,
    codes: list[int],
) -> None:
    """Run the parts of a lane one after the other, each in a process of its own."""
    whole = sum(shares[part] for part in parts)
    for part in parts:
        seconds = asked.seconds * shares[part] / whole
        more = {"seed": asked.seed, "count": asked.count, "seconds": seconds, "log": log}
        options = [str(word) for name, value in more.items() for word in (f"--{name}", value)]
        codes.append(subprocess.run([sys.executable, HERE, part, *options], check=False).returncode)


def attack(part: str, asked: argparse.Namespace) -> int:
    """Run one part in this process."""
    ledger = Ledger(part, asked.seed)
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        here = Path.cwd()
        importlib.import_module(part).run(
            asked.seed, asked.count, asked.seconds, ledger, Path(folder)
        )
        os.chdir(here)  # some parts work in the folder, which goes
    return ledger.close(asked.log)


if __name__ == "__main__":
    sys.exit(main())
