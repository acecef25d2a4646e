"""Kills and signals at random moments: every strategy and method resumes to the same bits."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from children import child, ended, stopped, timed
from ledger import Ledger

import smartcpd
from smartcpd import datasets
from smartcpd._fitting.fit import fit

PATIENCE = 5.0
"""Seconds after which a fit that was asked to stop hangs."""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT)
KILLS = 12
"""The most kills of one fit, which is then left to end."""

counts, _ = datasets.count((24, 20, 16), 3, a_max=1.5, random_state=1)
real = datasets.gaussian((24, 20, 16), 3, random_state=0).data
events = datasets.events((80, 40, 30), 3, 8000, random_state=1).data
holed = np.where(np.random.default_rng(0).random(counts.shape) < 0.3, np.nan, counts)
EPOCHS = {
    "smd": 60, "mm": 100, "md": 60, "ao-admm": 20, "row-newton": 15, "lbfgs": 60, "ggn": 15,
    "gcp-adam": 20, "quasi-newton": 40,
}  # fmt: skip
LEAST_SQUARES = {"als": 60, "hals": 60, "brascpd": 30, "adacpd": 30}


def scenarios(folder: Path) -> dict[str, dict[str, Any]]:
    """Every strategy and method, with data for it."""
    poisson = {"rank": 3, "loss": "poisson"}
    on_disk = folder / "x.zarr"
    held = zarr.create_array(on_disk, shape=counts.shape, chunks=(8, 10, 8), dtype="f8")
    held[:] = counts
    parts = smartcpd.partitions.write_tensor(folder / "x.parts", events, part_bytes=20_000)
    few = np.random.default_rng(5).poisson(0.01, (30, 20, 20))
    unobserved = smartcpd.SparseTensor(events.indices, events.values, events.shape, "unobserved")
    found: dict[str, dict[str, Any]] = {
        "dense": {"X": counts, "rank": 4, "loss": "poisson"},
        "dense holes": {"X": holed, **poisson},
        "dense gamma": {"X": counts + 0.5, "rank": 4, "loss": "gamma"},
        "sparse": {"X": events, **poisson},
        "sparse gaussian": {"X": events, "rank": 3, "max_epochs": 30},
        "completion": {"X": unobserved, "absent": "unobserved", **poisson},
        "few-events": {"X": few, **poisson},
        "simplex": {"X": counts, "constraint": {0: "simplex", 1: "simplex"}, **poisson},
        "subsampled": {"X": counts, "solver": "subsampled", **poisson},
        "tiled": {"X": held, "solver": "tiled", "max_memory": 60_000, **poisson},
        "partitioned": {"X": parts, "max_memory": 100_000, **poisson},
        "starts": {"X": counts, "solver": "mm", "n_init": 4, "max_epochs": 80, **poisson},
        "consensus": {"X": counts, "n_init": 2, "consensus": True, **poisson},
        "warm": {"X": counts, "init": "smd", "solver": "lbfgs", "max_epochs": 40, **poisson},
        "open": {"X": counts, "rank": 2, "loss": "negative-binomial(auto)"},
        "units": {"X": real * 1e-30, "rank": 3, "loss": "gaussian", "max_epochs": 40},
    }
    for name, epochs in EPOCHS.items():
        asked = {"X": counts, "solver": name, "max_epochs": epochs, "tol": 0.0}
        found[name] = asked | poisson
    for name, epochs in LEAST_SQUARES.items():
        found[name] = {"X": real, "rank": 3, "solver": name, "max_epochs": epochs, "tol": 0.0}
    return found


def kept(path: Path, found: Any) -> None:
    """Write what a fit found, bit for bit, as soon as it is there."""
    told = [found.loss, found.status.converged, found.status.reason, found.solver]
    np.savez(path.with_suffix(".tmp.npz"), *found.model.factors, told=json.dumps(told))
    os.replace(path.with_suffix(".tmp.npz"), path)


def same(one: Path, other: Path) -> str:
    """Return what differs between two fits, nothing if all is the same."""
    with np.load(one) as a, np.load(other) as b:
        if a.files != b.files or any(not np.array_equal(a[n], b[n]) for n in a.files[:-1]):
            return "other factors"
        loss_a, loss_b = (json.loads(str(each["told"])) for each in (a, b))
        return "" if loss_a == loss_b else f"{loss_a} became {loss_b}"


def disturbed(
    name: str, asked: dict[str, Any], folder: Path, chance: random.Random, ledger: Ledger, most: int
) -> None:
    """Run a fit undisturbed, then again with kills and resumes, and compare the two."""
    asked = asked | {"random_state": chance.randrange(1000), "progress": False, "n_threads": 1}
    repeat = f"{name} random_state={asked['random_state']}"
    whole, resumed, said = folder / "whole.npz", folder / "resumed.npz", folder / "said"
    for path in (whole, resumed):
        path.unlink(missing_ok=True)
    pid = child(lambda: kept(whole, fit(**asked)), said)
    code, seconds = timed(pid, 120)
    if code != 0:
        ledger.fail(repeat, f"undisturbed: {said.read_text() if said.exists() else 'no answer'}")
        return
    ledger.count("fits")
    where = {"checkpoint": folder / "checkpoint", "checkpoint_every": chance.choice([0, 0.02])}
    shutil.rmtree(where["checkpoint"], ignore_errors=True)

    def life() -> None:
        found = fit(**asked, **where, resume=True)
        if not found.status.interrupted:
            kept(resumed, found)

    for number in range(most + 1):
        pid = child(life, said)
        ledger.count("lives")
        wait = chance.uniform(0, 1.5 * seconds) if number < most else 120
        code = ended(pid, wait)
        if code is None and number < most:
            how = chance.choice(SIGNALS)
            code = stopped(pid, how, PATIENCE, said)
            ledger.count("kills" if how == signal.SIGKILL else "signals")
            # An interrupt outside of any stage of a fit is raised, as Python does.
            tidy = code == 3 and "KeyboardInterrupt" in said.read_text().splitlines()[-1]
            if code not in (0, -how) and not tidy:
                told = said.read_text() if code in (3, None) else f"exit code {code}"
                ledger.fail(repeat, f"signal {how} at {wait:.3f} s: {told}")
                return
        elif code != 0:
            told = said.read_text() if code == 3 else f"exit code {code}"
            ledger.fail(repeat, f"life {number}: {told}")
            return
        if resumed.exists():
            break
    ledger.count("resumes")
    differs = same(whole, resumed) if resumed.exists() else "the fit never ended"
    ledger.expect(not differs, repeat, f"after kills: {differs}")


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Disturb so many fits, one scenario after another."""
    warnings.simplefilter("ignore")
    known = scenarios(folder)
    names, compiled = list(known), set()
    until = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > until:
            break
        name = names[(seed + number) % len(names)]
        if name not in compiled:  # before the fork, for all children
            fit(**known[name] | {"random_state": 0, "progress": False, "n_threads": 1})
            compiled.add(name)
        chance = random.Random(f"{seed} {number}")
        disturbed(name, known[name], folder, chance, ledger, KILLS)
