"""Damaged files of every format, read in processes of their own under a limit of memory."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from damaged_files import KINDS
from ledger import Ledger

SCRIPT = Path(__file__).resolve().parent.parent / "damaged_files.py"
BATCH = 100
"""Files of a kind that a process reads."""
PATIENCE = 900.0


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Damage so many files, some of every kind in each batch."""
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until and ledger.counts["damaged files"] < count:
        each = min(BATCH, -(-(count - ledger.counts["damaged files"]) // len(KINDS)))
        batch = folder / str(number)
        batch.mkdir()
        # The batches of a seed differ, and batch 0 is what the test of damaged files reads.
        one = str(seed + 1_000_000 * number)
        command = [sys.executable, SCRIPT, batch, one, str(each)]
        repeat = f"{SCRIPT.name} FOLDER {one} {each}"
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired as late:
            ledger.fail(repeat, f"no answer in {PATIENCE} s: {str(late.stdout)[-500:]}")
            return
        ledger.count("damaged files", each * len(KINDS))
        if done.returncode:
            told = done.stdout.split("FOREIGN")[1:] or [done.stdout[-3000:]]
            said = "".join(each[:3000] for each in told)
            ledger.fail(repeat, f"exit {done.returncode}: {said}{done.stderr[-1000:]}")
            if done.returncode < 0:
                return
        number += 1
