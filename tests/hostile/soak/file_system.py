"""Faults of the file system: full, read-only, input that vanishes or shrinks, folders shared.

A fault is raised from the call of the operating system of a random number on; what was being done
ends with an error of ours, or goes on without, and never with half a file or a foreign exception.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import random
import resource
import shutil
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from children import child, ended
from commands import called, words, written
from ledger import Ledger

import smartcpd
from smartcpd import datasets
from smartcpd._fitting.fit import fit
from smartcpd.errors import SmartCPDError

counts, _ = datasets.count((24, 20, 16), 3, a_max=1.5, random_state=1)
FAULTS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT)


@contextlib.contextmanager
def failing(folder: Path, number: int, kind: int) -> Iterator[None]:
    """Let writes below the folder fail, from the call of a number on."""
    calls, real = [0], {"open": builtins.open, "replace": os.replace, "fsync": os.fsync}

    def due(path: Any) -> bool:
        if isinstance(path, str | os.PathLike) and not str(path).startswith(str(folder)):
            return False
        calls[0] += 1
        return calls[0] > number

    def opening(path: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if not isinstance(path, int) and set(mode) & set("wxa+") and due(path):
            raise OSError(kind, os.strerror(kind), str(path))
        return real["open"](path, mode, *rest, **more)

    def replacing(source: Any, target: Any, **more: Any) -> None:
        if due(target):
            raise OSError(kind, os.strerror(kind), str(target))
        real["replace"](source, target, **more)

    def syncing(descriptor: int) -> None:
        if due(None):
            raise OSError(kind, os.strerror(kind))
        real["fsync"](descriptor)

    builtins.open = io.open = opening  # type: ignore[assignment]
    os.replace, os.fsync = replacing, syncing  # type: ignore[assignment]
    try:
        yield
    finally:
        builtins.open = io.open = real["open"]  # type: ignore[assignment]
        os.replace, os.fsync = real["replace"], real["fsync"]  # type: ignore[assignment]


def a_disk_that_fails(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """A fit with checkpoints, a model and a tensor are written to a disk that fails."""
    place = folder / "disk"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    kind, number = chance.choice(FAULTS), chance.randrange(12)
    what = chance.choice(["fit", "model", "tensor", "tensor", "command"])
    repeat = f"{what} {errno.errorcode[kind]} from call {number} on"
    asked: dict[str, Any] = {"random_state": 0, "progress": False, "n_threads": 1}

    def work() -> None:
        if what == "fit":
            where = {"checkpoint": place / "checkpoint", "checkpoint_every": 0}
            fit(counts, 3, "poisson", solver="mm", max_epochs=30, **where, **asked)
        elif what == "model":
            smartcpd.CPModel([np.ones((3, 2))] * 3).save(place / "model")
        elif what == "command":
            code = ended(called(words("x.npy", place / "run", "lbfgs"), folder / "said"), 120)
            told = (folder / "said").read_text()
            if code not in (0, 1) or "Traceback" in told:
                raise AssertionError(f"exit {code}: {told}")
        else:
            endings = (".npy", ".npz", ".tns", ".tns.gz", ".parts", ".h5", ".zarr", ".nc")
            smartcpd.write(place / f"x{chance.choice(endings)}", counts)

    with failing(place, number, kind):
        outcome = attempted(work)
    ledger.count("disks that failed")
    ledger.expect(not outcome, repeat, outcome)
    strangers = [p.name for p in place.rglob("*") if p.suffix == ".tmp" or p.name.startswith(".")]
    strangers = [name for name in strangers if not name.startswith((".z", ".new"))]
    if what in ("model", "tensor"):
        ledger.expect(not strangers, repeat, f"left behind: {strangers}")


def attempted(work: Callable[[], Any]) -> str:
    """Do it; return what is wrong about how it ended."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    except (SmartCPDError, OSError):  # the operating system's own words are an answer too
        return ""
    except BaseException:
        return traceback.format_exc()
    return ""


def input_that_vanishes(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """Files are removed, cut or overwritten while a fit reads them."""
    kind, how = chance.choice(["zarr", "parts", "npy"]), chance.choice(["gone", "cut", "noise"])
    epoch = chance.randrange(1, 6)
    repeat = f"{kind} {how} at epoch {epoch}"
    path, said = folder / f"v.{kind}", folder / "said"
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
    more: dict[str, Any] = {"max_memory": 40_000}
    if kind == "zarr":
        X: Any = zarr.create_array(path, shape=counts.shape, chunks=(8, 10, 8), dtype="f8")
        X[:] = counts
    elif kind == "parts":
        sparse = smartcpd.SparseTensor(np.argwhere(counts), counts[counts != 0], counts.shape)
        X = smartcpd.partitions.write_tensor(path, sparse, part_bytes=10_000)
    else:
        np.save(path, np.tile(counts, (8, 1, 1)))
        X, more = smartcpd.read(path), {"solver": "lbfgs"}

    def spoil(report: Any) -> None:
        if report.record.epoch < epoch:
            return
        files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
        for file in files:
            if how == "gone":
                file.unlink()
            elif how == "cut":
                os.truncate(file, file.stat().st_size // 3)
            else:
                file.write_bytes(os.urandom(file.stat().st_size))

    def work() -> None:
        outcome = attempted(lambda: fit(
            X, 3, "poisson", random_state=0, progress=False, n_threads=1, callback=spoil, **more
        ))  # fmt: skip
        if outcome:
            raise AssertionError(outcome)

    code = ended(child(work, said), 120)
    ledger.count("inputs that vanished")
    told = said.read_text() if code == 3 else f"exit code {code}"
    ledger.expect(code == 0, repeat, told)


def a_bomb(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """An array on disk claims terabytes: it is refused, or fitted within memory and time."""
    size, side = chance.randrange(1000, 20_000), chance.choice([1, 2, 8, 30, 100, 1000])
    path, said = folder / "bomb.zarr", folder / "said"
    shutil.rmtree(path, ignore_errors=True)
    zarr.create_array(path, shape=(size,) * 3, chunks=(side,) * 3, dtype="f8")

    def work() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF)
        asked: dict[str, Any] = {"max_memory": 300_000_000, "max_time": 1.0, "random_state": 0}
        outcome = attempted(lambda: fit(
            smartcpd.read(path, max_memory=300_000_000), 2, "poisson", progress=False, **asked
        ))  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_SELF)
        grown, took = after.ru_maxrss - before.ru_maxrss, after.ru_utime - before.ru_utime
        if outcome or grown > 300_000 or took > 10:
            raise AssertionError(f"{grown} kB more, {took:.1f} s: {outcome}")

    code = ended(child(work, said), 120)
    ledger.count("bombs")
    told = said.read_text() if code == 3 else f"exit code {code}"
    ledger.expect(code == 0, f"a Zarr array of {size}³ in chunks of {side}³", told)


def a_folder_shared(folder: Path, chance: random.Random, ledger: Ledger) -> None:
    """Two processes at once on one folder: one gets it, the other is told, nothing is mixed up."""
    place = folder / "shared"
    shutil.rmtree(place, ignore_errors=True)
    said = [folder / "said-0", folder / "said-1"]
    pids = []
    for number in range(2):
        pids.append(called(words("x.npy", place, "smd"), said[number]))
        time.sleep(chance.uniform(0, 0.3))
    codes = [ended(pid, 120) for pid in pids]
    told = [path.read_text() for path in said]
    ledger.count("folders shared")
    fine = 0 in codes and all(code in (0, 1) for code in codes)
    fine = fine and not any("Traceback" in each for each in told)
    ledger.expect(fine, "two commands on one folder", f"{codes}: {told}")
    smartcpd.CPModel.load(place / "model")


def run(seed: int, count: int, seconds: float, ledger: Ledger, folder: Path) -> None:
    """Try so many faults, of all kinds in turn."""
    os.chdir(folder)
    written(folder)
    fit(counts, 3, "poisson", random_state=0, progress=False, n_threads=1)
    until = time.monotonic() + seconds
    trials = (
        a_disk_that_fails, input_that_vanishes, a_bomb, a_disk_that_fails, a_folder_shared,
    )  # fmt: skip
    for number in range(count):
        if time.monotonic() > until:
            break
        trials[number % len(trials)](folder, random.Random(f"{seed} {number}"), ledger)
