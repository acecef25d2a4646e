"""Attacks on every promise, for as long as wanted: ``python tests/hostile/soak PART ...``.

Each part is seeded and bounded: it ends after so many trials or seconds, prints what it tried, and
of every failure what repeats it. ``make soak`` runs all of them for about an hour.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from ledger import Ledger  # noqa: E402 - which is found by the line above

PARTS = {
    "fits": 0.45,
    "files": 0.15,
    "kills": 0.15,
    "commands": 0.05,
    "file_system": 0.05,
    "processes": 0.05,
    "caches": 0.05,
    "clusters": 0.05,
}
"""The parts, and the share of the time that each has by default."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000, help="trials of each part")
    parser.add_argument("--seconds", type=float, default=3600.0, help="in all")
    parser.add_argument("--log", type=Path, help="a file to which results are added, as JSON")
    asked = parser.parse_args()
    parts = asked.parts or list(PARTS)
    share = sum(PARTS[part] for part in parts)
    code = 0
    for part in parts:
        ledger = Ledger(part, asked.seed)
        seconds = asked.seconds * PARTS[part] / share
        with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
            here = Path.cwd()
            importlib.import_module(part).run(
                asked.seed, asked.count, seconds, ledger, Path(folder)
            )
            os.chdir(here)  # some parts work in the folder, which goes
        code |= ledger.close(asked.log)
    return code


if __name__ == "__main__":
    sys.exit(main())
