"""Fits in threads, in forked and spawned children, hundreds in a row: same bits, flat memory."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ledger import Ledger

from smartcpd import datasets
from smartcpd._fitting.fit import fit

AT_ONCE = 20
IN_A_ROW = 500
GROWTH = 40 << 20
"""Bytes by which the process may grow over the second half of the fits in a row."""
PATIENCE = 300.0

counts, _ = datasets.count((14, 12, 10), 3, a_max=1.5, random_state=1)
events = datasets.events((60, 30, 20), 3, 3000, random_state=1).data
ASKED: list[dict[str, Any]] = [
    {"X": counts, "loss": "poisson"},
    {"X": counts + 1.0, "loss": "gamma", "solver": "lbfgs", "max_epochs": 20},
    {"X": counts, "loss": "gaussian"},
    {"X": events, "loss": "poisson"},
    {"X": counts, "loss": "poisson", "solver": "smd", "max_epochs": 15},
]


def fitted(number: int) -> bytes:
    """The factors of a fit, bit for bit."""
    warnings.simplefilter("ignore")
    asked = ASKED[number % len(ASKED)]
    found = fit(rank=3, random_state=number, progress=False, n_threads=2, **asked)
    return b"".join(A.tobytes() for A in found.model.factors)


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Try everything once; ``count`` bounds the number of fits in a row."""
    at_once = min(AT_ONCE, count)
    first = 1000 * seed
    numbers = range(first, first + at_once)
    alone = [fitted(number) for number in numbers]
    ledger.count("fits", at_once)
    with ThreadPoolExecutor(at_once) as pool:
        threads = list(pool.map(fitted, numbers, timeout=PATIENCE))
    ledger.count("fits in threads", at_once)
    ledger.expect(threads == alone, f"{at_once} fits in threads from {first}", "other bits")
    for method in ("fork", "spawn"):
        few = numbers[:4]
        context = multiprocessing.get_context(method)
        with warnings.catch_warnings(), ProcessPoolExecutor(2, mp_context=context) as pool:
            warnings.simplefilter("ignore")
            found = list(pool.map(fitted, few, timeout=PATIENCE))
        ledger.count(f"fits in children by {method}", len(few))
        ledger.expect(found == alone[:4], f"{method} from {first}", "other bits")
    _in_a_row(first, min(IN_A_ROW, count), seconds, ledger)


def _in_a_row(first: int, many: int, seconds: float, ledger: Ledger) -> None:
    until = time.monotonic() + seconds
    half = size = 0
    for number in range(many):
        if time.monotonic() > until:
            break
        fitted(first + number)
        ledger.count("fits in a row")
        size = resident()
        if number == many // 2:
            half = size
    if half:
        ledger.counts["kB grown over the second half"] = max(size - half, 0) // 1024
        ledger.expect(
            size - half < GROWTH, f"{many} fits from {first}", f"{size - half} bytes more"
        )
