"""Does a fit say when its rank is too low or too high?

Planted data of ranks 2 to 8, a seed each, is fitted at the true rank, at half of it and at twice as
many components; the verdict should be "well", "too low" and "too high". Where time or data did not
suffice it is "unknown", which is counted apart. Columns without structure are fitted with ten
components. The rules were chosen on other seeds (0 to 19) than these (from 1100). The time of the
check is one of processors, as a share of what it may take: a third of the fit, or 0.75 s. Then the
command line fits some of the data, in a process of its own each: the time of the check there is one
of the clock, as a share of all else that the command does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.results import Result, Row, Spread, Verdict
from benchmarks.selecting import SHAPE, gamma
from smartcpd import SparseTensor, datasets, write
from smartcpd._fitting.fit import fit
from smartcpd._inference.rank_check.check import checked_rank
from smartcpd._inference.rank_check.trials import LEAST_SECONDS, SHARE_OF_FIT
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits

RANKS = range(2, 9)
FIRST_SEED, SEEDS, RIGHT = 1100, 20, 18
WANTED = {"half": Suits.LOW, "true": Suits.WELL, "twice": Suits.HIGH}


@dataclass(frozen=True)
class Kind:
    """A family of data sets: a rank and a seed each."""

    name: str
    loss: str
    make: Callable[[int, int], object]


def counts(rank: int, seed: int) -> np.ndarray:
    return datasets.count(SHAPE, rank, a_max=1.0, random_state=seed).data


def events(rank: int, seed: int) -> SparseTensor:
    """A table of 200,000 events, most of whose cells are empty."""
    return datasets.events((200, 150, 100), rank, 200_000, random_state=seed).data


def yes_no(rank: int, seed: int) -> np.ndarray:
    """Each component is about a few rows of each mode: memberships that overlap."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(0.3, 1.0, (n, rank)) for n in SHAPE]
    odds = np.einsum("ir,jr,kr->ijk", *factors)
    odds *= 0.5 / np.median(odds[odds > np.median(odds)])
    return (rng.random(SHAPE) < odds / (1 + odds)).astype(np.uint8)


def no_structure(columns: int, seed: int) -> np.ndarray:
    """Counts of rows of independent columns, each of them uneven."""
    rng = np.random.default_rng(seed)
    shares = [rng.dirichlet(np.full(n, 0.7)) for n in (40, 30, 24)[:columns]]
    return rng.poisson(30_000 * np.einsum("i,j,k->ijk", *shares))


KINDS = (
    Kind("counts", "poisson", counts),
    Kind("events, sparse", "poisson", events),
    Kind("yes/no", "bernoulli-odds", yes_no),
    Kind("positive, 20 dB", "gamma", gamma),
)


def judged(X: object, rank: int, loss: str, seed: int) -> tuple[RankVerdict, float]:
    """The verdict, and the time of the check over that which it may take."""
    began = time.process_time()
    found = fit(X, rank, loss, random_state=seed, n_threads=1, progress=False)
    middle = time.process_time()
    factors = found.model.distribute().factors
    verdict = checked_rank(found.problem, factors, middle - began, n_threads=1)
    allowed = max(SHARE_OF_FIT * (middle - began), LEAST_SECONDS)
    return verdict, (time.process_time() - middle) / allowed


def commanded(X: object, rank: int, loss: str, folder: Path) -> tuple[str, float]:
    """The verdict of a command, and the seconds of its check over those of all else."""
    source, out = folder / "X.npz", folder / "out"
    write(source, X)
    options = ["--rank", str(rank), "--loss", loss, "--out", str(out), "--force", "--quiet"]
    began = time.perf_counter()
    command = [sys.executable, "-m", "smartcpd", "fit", str(source), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - began
    verdict = json.loads((out / "model.json").read_text())["run"]["rank"]
    return verdict["suits"], verdict["seconds"] / (whole - verdict["seconds"])


def run_commands(seeds: range) -> Iterator[Result]:
    """Yield how long the check of a command takes, beside all else that it does."""
    shares, right = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            commanded(kind.make(2, 999), 2, kind.loss, Path(folder))  # compiles
            own = []
            for seed in seeds:
                rank = RANKS[seed % len(RANKS)]
                X = kind.make(rank, seed)
                for size, asked in sizes(rank).items():
                    suits, share = commanded(X, asked, kind.loss, Path(folder))
                    own.append(share)
                    right += suits == str(WANTED[size])
            yield Row("Commands", {"data": kind.name, "check over all else": Spread.of(own)})
            shares += own
    yield Verdict("commands: check over all else, at most", max(shares), 1 / 3, at_most=True)
    yield Verdict(f"commands: right verdicts, of {len(shares)}", right, 0.9 * len(shares))


def sizes(rank: int) -> dict[str, int]:
    """The ranks of the fits of data of one rank."""
    return {"half": max(1, rank // 2), "true": rank, "twice": 2 * rank}


def run(quick: bool = False, seeds: range | None = None) -> Iterator[Result]:
    seeds = seeds or range(FIRST_SEED, FIRST_SEED + (3 if quick else SEEDS))
    for kind in KINDS:
        judged(kind.make(2, 999), 2, kind.loss, 0)  # compiles
        told: dict[str, Counter[str]] = {size: Counter() for size in WANTED}
        shares, named = [], 0
        for seed in seeds:
            rank = RANKS[seed % len(RANKS)]
            X = kind.make(rank, seed)
            for size, own in sizes(rank).items():
                verdict, share = judged(X, own, kind.loss, seed)
                told[size][str(verdict.suits)] += 1
                shares.append(share)
                named += size == "twice" and verdict.better == rank
        yield Row(
            "Verdicts",
            {
                "data": kind.name,
                **{size: ", ".join(f"{n} {s}" for s, n in told[size].items()) for size in WANTED},
                "true rank named at twice": f"{named} of {len(seeds)}",
                "time over what is allowed": Spread.of(shares),
            },
        )
        yield Verdict(
            f"{kind.name}: time over what is allowed, at most", max(shares), 1.1, at_most=True
        )
        for size, right in WANTED.items():
            yield Verdict(
                f"{kind.name}, {size} rank: '{right}', of {len(seeds)}",
                told[size][str(right)],
                RIGHT / SEEDS * len(seeds),
            )
    flagged = [
        judged(no_structure(columns, seed), 10, "poisson", seed)[0].suits is Suits.HIGH
        for seed in seeds
        for columns in (3,)
    ]
    yield Verdict(
        f"independent columns, 10 components: 'too high', of {len(seeds)}",
        sum(flagged),
        RIGHT / SEEDS * len(seeds),
    )
    yield from run_commands(seeds[: 1 if quick else 7])
