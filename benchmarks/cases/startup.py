"""Imports, commands, first fits ever, and the first epoch of a second process.

The package is installed into an environment of its own, with what it asks for and nothing else, as
its users have it. Every figure is the time of a new process, with the bytecode of all modules on
disk. First fits have a cache of compiled code that was empty before; "later" ones follow in the
same cache. Seconds of processors, helpers included, tell how far a busy machine stretches those of
the clock.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.results import Method, Remark, Result, Row, Spread, Verdict

FIRST_EPOCHS = {
    "SmartCPD": """
import numpy as np
from smartcpd import SmartCPD
SmartCPD(2, "poisson", callback=lambda report: report.record.epoch == 1).fit(np.load({path!r}))
""",
    "decompose": """
import numpy as np
from smartcpd import decompose
decompose(np.load({path!r}), 2, "poisson", callback=lambda report: report.record.epoch == 1)
""",
}
KINDS = (
    ("dense counts", "datasets.count(S, 20, random_state=0).data", 20, "poisson"),
    ("sparse counts", "datasets.events(S, 5, n_events=20_000, random_state=0).data", 5, "poisson"),
    ("dense yes/no", "datasets.binary(S, 5, random_state=0).data", 5, "bernoulli-odds"),
    ("dense gamma", "datasets.gamma(S, 5, random_state=0).data", 5, "gamma"),
)
A_FIT = """
import time
from smartcpd import SmartCPD, datasets
S = (100, 100, 100)
X = {X}
began = time.perf_counter()
SmartCPD({rank}, {loss!r}, random_state=0).fit(X)
print(time.perf_counter() - began)
"""
LIMITS = {
    "import smartcpd": 0.3,
    "smartcpd --version": 0.25,
    "smartcpd --help": 0.25,
    "smartcpd show": 0.6,
    "first epoch of SmartCPD": 1.0,
    "first epoch of decompose": 1.0,
    "smartcpd fit of a small table": 2.0,
}
FIRST, LATER = 12.0, 4.0
ROOT = Path(__file__).resolve().parents[2]


class Timed(NamedTuple):
    """What a new process took, and what it printed."""

    seconds: float
    cpu_seconds: float
    printed: str
    said: str


def installed(folder: Path) -> str:
    """Install the package into a new environment; return the Python of that."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    return python


def timed(python: str, arguments: list[str], cache: str) -> Timed:
    """Run a new Python."""
    environment = dict(os.environ, NUMBA_CACHE_DIR=cache)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began, before = time.perf_counter(), _of_processors()
    done = subprocess.run(
        [python, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    return Timed(seconds, _of_processors() - before, done.stdout, done.stderr)


def _of_processors() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def events() -> str:
    """Return a table of some 1,300 events, one a line, with three planted components."""
    rng = np.random.default_rng(0)
    factors = [rng.gamma(0.5, 1.0, (length, 3)) for length in (30, 24, 7)]
    counts = rng.poisson(0.5 * np.einsum("ir,jr,kr->ijk", *factors))
    lines = [f"s{i},{j},{k}\n" * int(count) for (i, j, k), count in np.ndenumerate(counts) if count]
    return "station,hour,weekday\n" + "".join(lines)


def warm(python: str, folder: Path, cache: str) -> dict[str, list[str]]:
    """Return the commands that are timed when all is compiled, after a first run of each."""
    X = np.random.default_rng(0).poisson(2.0, (30, 20, 10))
    np.save(folder / "X.npy", X)
    run = ["-m", "smartcpd"]
    fit = [*run, "fit", str(folder / "X.npy"), "--rank", "2", "--loss", "poisson"]
    timed(python, [*fit, "--out", str(folder / "run")], cache)
    table = str(folder / "events.csv")
    Path(table).write_text(events())
    small = [*run, "fit", table, "--modes", "station,hour,weekday", "--rank", "3", "--force"]
    commands = {
        "import smartcpd": ["-c", "import smartcpd"],
        "smartcpd --version": [*run, "--version"],
        "smartcpd --help": [*run, "--help"],
        "smartcpd show": [*run, "show", str(folder / "run")],
        "smartcpd fit of a small table": [*small, "--out", str(folder / "small")],
    }
    for name, program in FIRST_EPOCHS.items():
        program = program.format(path=str(folder / "X.npy"))
        commands[f"first epoch of {name}"] = ["-c", program]
    for arguments in commands.values():
        timed(python, arguments, cache)
    return commands


def run(quick: bool = False) -> Iterator[Result]:
    repeats = 2 if quick else 5
    yield Method("smartcpd", "defaults", "all")
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name), str(Path(name) / "cache")
        python = installed(folder / "environment")
        for what, arguments in warm(python, folder, cache).items():
            runs = [timed(python, arguments, cache) for _ in range(repeats)]
            seconds = [run.seconds for run in runs]
            yield Row(
                "A new process, all compiled",
                {
                    "what": what,
                    "seconds": Spread.of(seconds),
                    "CPU seconds": Spread.of([run.cpu_seconds for run in runs]),
                },
            )
            yield Verdict(f"{what}, seconds", float(np.median(seconds)), LIMITS[what], at_most=True)
        for first in KINDS[: 1 if quick else 2]:
            yield from first_fits(python, first, repeats)
    load = os.getloadavg()[2]
    yield Remark(f"Average number of processes that wanted to run meanwhile: {load:.1f}.")


def first_fits(python: str, first: tuple[str, str, int, str], repeats: int) -> Iterator[Result]:
    """Yield the times of a first fit ever, and of other kinds after it, each with a new cache."""
    kinds = (first, *(kind for kind in KINDS if kind is not first))
    runs: dict[str, list[Timed]] = {}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for what, X, rank, loss in kinds:
                program = A_FIT.format(X=X, rank=rank, loss=loss)
                runs.setdefault(what, []).append(timed(python, ["-c", program], cache))
    for what, done in runs.items():
        is_first = what == first[0]
        place = "first ever" if is_first else f"after {first[0]}"
        seconds = [float(run.printed) for run in done]
        cells = {
            "data": what,
            "cache": place,
            "seconds": Spread.of(seconds),
            "CPU seconds of the process": Spread.of([run.cpu_seconds for run in done]),
        }
        yield Row("A whole fit", cells)
        limit = FIRST if is_first else LATER
        median = float(np.median(seconds))
        yield Verdict(f"fit of {what}, {place}, seconds", median, limit, at_most=True)
        yield Remark(f"{what}, {place}: it says {done[0].said.strip()!r}.")
