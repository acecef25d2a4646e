"""The command line under signals: at any moment, twice, and with ``--resume`` afterwards.

Whatever happens, the exit code says so, there is no traceback, and ``--resume`` ends with the bits
of a run that nobody disturbed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
from children import child, ended, stopped, timed
from ledger import Ledger

from smartcpd import datasets
from smartcpd._app.cli import main
from smartcpd._app.run_folder import RunFolder

PATIENCE = 10.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
CODES = {signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15), signal.SIGKILL: (-9,)}
"""How a program ends that a signal has ended; negative before it has begun and at its very end."""
INPUTS = ("x.npy", "x.csv", "x.tns")


def written(folder: Path) -> None:
    X, _ = datasets.count((20, 16, 12), 3, a_max=1.5, random_state=1)
    np.save(folder / "x.npy", X)
    rows = [f"a{i},b{j},c{k},{X[i, j, k]:g}" for i, j, k in np.argwhere(X)]
    (folder / "x.csv").write_text("\n".join(["one,two,three,n", *rows]))
    (folder / "x.tns").write_text("\n".join(
        f"{i + 1} {j + 1} {k + 1} {X[i, j, k]:g}" for i, j, k in np.argwhere(X)
    ))  # fmt: skip


def words(name: str, out: Path, solver: str) -> list[str]:
    found = ["fit", name, "--rank", "3", "--loss", "poisson", "--seed", "1", "--out", str(out)]
    found += ["--checkpoint-every", "0.01", "--json", "--solver", solver]
    if name.endswith(".csv"):
        found += ["--modes", "one,two,three", "--value", "n"]
    return found


def called(arguments: list[str], said: Path) -> int:
    """Start a child that runs the command; its output and errors go to a file."""

    def work() -> None:
        descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        try:
            main(arguments)
        finally:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()

    return child(work, said)


def disturbed(name: str, solver: str, folder: Path, chance: random.Random, ledger: Ledger) -> None:
    repeat = f"smartcpd {' '.join(words(name, Path('run'), solver))}"
    whole, out, said = folder / "whole", folder / "run", folder / "said"
    for path in (whole, out):
        shutil.rmtree(path, ignore_errors=True)
    code, seconds = timed(called(words(name, whole, solver), said), 120)
    if code != 0:
        ledger.fail(repeat, f"undisturbed: {said.read_text()}")
        return
    for number in range(8):
        # A kill may leave a checkpoint without a beginning, and the next run has one of its own.
        resume = ["--resume"] if RunFolder(out).resumable else []
        pid = called(words(name, out, solver) + resume, said)
        ledger.count("commands")
        wait = chance.uniform(0, 1.3 * seconds) if number < 7 else 120.0
        code, how = ended(pid, wait), 0
        if code is None and number < 7:
            how = chance.choice(SIGNALS)
            code = stopped(pid, how, PATIENCE, said)
            ledger.count("kills" if how == signal.SIGKILL else "signals")
        told = said.read_text() if said.exists() else ""
        if code not in ((0,) if not how else (0, *CODES[signal.Signals(how)])):
            ledger.fail(repeat, f"signal {how} after {wait:.3f} s: exit {code}: {told}")
            return
        ledger.expect("Traceback" not in told, repeat, f"signal {how} at {wait:.3f} s: {told}")
        if _complete(out):
            break
    ledger.count("resumes")
    with np.load(whole / "model.npz") as a, np.load(out / "model.npz") as b:
        same = all(np.array_equal(a[each], b[each]) for each in a.files)
    ledger.expect(same, repeat, "the run after signals has other factors")


def _complete(out: Path) -> bool:
    header = out / "model.json"
    if not header.exists():
        return False
    run = json.loads(header.read_text())["run"]
    # A kill may leave the folder of a checkpoint behind, of which nothing can be resumed any more.
    return not run["status"]["interrupted"] and not RunFolder(out).resumable


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Disturb so many runs of the command."""
    os.chdir(folder)
    written(folder)
    for name in INPUTS:  # everything is imported and compiled before the first fork
        child_free = words(name, folder / f"warm-{name}", "auto")
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            contextlib.suppress(SystemExit),
        ):
            main(child_free)
    until = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > until:
            break
        chance = random.Random(f"{seed} {number}")
        name, solver = chance.choice(INPUTS), chance.choice(["auto", "auto", "smd", "lbfgs"])
        disturbed(name, solver, folder, chance, ledger)
