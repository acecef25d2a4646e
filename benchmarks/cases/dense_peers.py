"""Default fits of dense data against pyttb's gcp_opt with L-BFGS-B and GenTen's cp_opt.

pyttb begins at a random start, as many iterations as stated; so does GenTen, which is given the
nonzeros. Seconds are of whole fits, and to a model within 1.1 times the error of the optimum
reached from the true factors, looked at after every iteration while the clock stands still. GenTen
cannot be looked at; for it the loss of our model when it first was that good is the aim.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import peers
from benchmarks.oracle import oracle
from benchmarks.planted import Kind, binary, compiled, count, gamma
from benchmarks.results import Bars, Method, Result, Row, Spread, Verdict, blas_threads
from smartcpd import SmartCPD, metrics
from smartcpd._app.paper import peers as paper_peers
from smartcpd._app.paper.peers import sparse_data
from smartcpd._common import threads
from smartcpd._fitting.found import Report

SEEDS = range(920_000, 920_020)
ITERATIONS = 100
CASES: tuple[tuple[Kind, float | None, float], ...] = (
    (count(10), 20, 10),
    (count(20), 20, 10),
    (count(50), 20, 10),
    (binary(20, 0.3), None, 3),
    (binary(20, 0.5), None, 3),
    (gamma(20, 100), None, 8),
)
"""What, and how many times faster than pyttb to the aim and in all."""
GENTEN_RANK, GENTEN_TIMES = 20, 5


@dataclass
class Reached:
    """Seconds of a fit, without those spent on looking at it."""

    truth: list[np.ndarray]
    aim: float
    whole: float = float("nan")
    aimed: float = float("inf")
    loss: float = float("nan")

    def __post_init__(self) -> None:
        self.spent, self.resumed = 0.0, time.perf_counter()

    def look(self, factors: Callable[[], list[np.ndarray]], loss: float = float("nan")) -> None:
        """The clock stands still, also while factors are copied out of the fit."""
        self.spent += time.perf_counter() - self.resumed
        if self.aimed == float("inf"):
            found = factors()
            right = found[0].shape == self.truth[0].shape
            if right and metrics.factor_mse(found, self.truth) <= self.aim:
                self.aimed, self.loss = self.spent, loss
        self.resumed = time.perf_counter()

    def watch(self, report: Report) -> None:
        """A callback for a fit of ours."""
        self.look(lambda: report.model().factors, report.record.loss)

    def end(self) -> None:
        self.whole = self.spent + time.perf_counter() - self.resumed


def ours(X: np.ndarray, kind: Kind, truth: list[np.ndarray], aim: float, seed: int) -> Reached:
    reached = Reached(truth, aim)
    SmartCPD(kind.rank, kind.loss, random_state=seed, callback=reached.watch).fit(X)
    reached.end()
    return reached


def pyttb_lbfgsb(
    X: np.ndarray, kind: Kind, start: list[np.ndarray], truth: list[np.ndarray], aim: float
) -> Reached:
    found = paper_peers.pyttb_lbfgsb(X, start, kind.loss, iterations=ITERATIONS)
    reached = Reached(truth, aim, whole=found[-1].time)
    good = (s for s in found if s.factors and metrics.factor_mse(s.factors, truth) <= aim)
    reached.aimed = next((s.time for s in good), float("inf"))
    return reached


def run(quick: bool = False) -> Iterator[Result]:
    yield Method("smartcpd", "defaults", threads.resolve(None))
    yield Method("pyttb", f"gcp_opt, LBFGSB(maxiter={ITERATIONS}), random start", blas_threads())
    seeds = SEEDS[:1] if quick else SEEDS
    bars: dict[str, dict[str, float | Spread]] = {}
    for kind, times_to_aim, times_whole in CASES[1::4] if quick else CASES:
        compiled(kind)
        aimed, whole, pairs = [], [], []
        for seed in seeds:
            X, truth = kind.make(seed)
            aim = 1.1 * metrics.factor_mse(oracle(X, truth, kind.loss), truth)
            data = sparse_data(X)
            start = peers.start_for(data, kind.rank, seed)
            mine = ours(X, kind, truth, aim, seed)
            theirs = pyttb_lbfgsb(X, kind, start, truth, aim)
            # A peer that does not get there is counted with the time after which it gave up.
            aimed.append(min(theirs.aimed, theirs.whole) / mine.aimed)
            whole.append(theirs.whole / mine.whole)
            pairs.append((mine, theirs))
        n_reached = sum(np.isfinite(t.aimed) for _, t in pairs)
        mine, theirs = (Spread.of([pair[k].whole for pair in pairs]) for k in (0, 1))
        bars[kind.name] = {"smartcpd": mine, "pyttb": theirs}
        yield Row(
            "Seconds, and times faster than pyttb",
            {
                "data": kind.name,
                "ours, whole fit": mine,
                "ours, to the aim": Spread.of([m.aimed for m, _ in pairs]),
                "pyttb, whole fit": theirs,
                "its aims reached": f"{n_reached} of {len(pairs)}",
                "to the aim": Spread.of(aimed),
                "whole": Spread.of(whole),
            },
        )
        if times_to_aim is not None:
            yield Verdict(
                f"{kind.name}: to the aim, times faster than pyttb",
                statistics.median(aimed),
                times_to_aim,
            )
        yield Verdict(
            f"{kind.name}: whole fit, times faster than pyttb",
            statistics.median(whole),
            times_whole,
        )
        if kind.rank == GENTEN_RANK and kind.loss == "poisson" and not quick:
            yield from against_genten(kind)
    yield Bars("whole", "Whole fits of dense data", "seconds", bars)


def against_genten(kind: Kind) -> Iterator[Result]:
    """The better of a few memories, each to where it ends."""
    yield peers.genten_method("cp_opt, L-BFGS-B, the best of memory=5, 20, 100; ftol=1e-10")
    ratios = []
    for seed in SEEDS[:3]:
        X, truth = kind.make(seed)
        aim = 1.1 * metrics.factor_mse(oracle(X, truth, kind.loss), truth)
        mine = ours(X, kind, truth, aim, seed)
        data = sparse_data(X)
        start = peers.start_for(data, kind.rank, seed)
        best, longest = float("inf"), 0.0
        for memory in (5, 20, 100):
            peer = peers.genten_lbfgsb(data, start, memory=memory)
            best = min(best, peer.seconds_to(mine.loss))
            longest = max(longest, peer.seconds)
            cells = {"ends at": f"{peer.loss:.4f}", "after, s": peer.seconds}
            yield Row(
                f"GenTen, {kind.name}",
                {"seed": seed, "aim": f"{mine.loss:.4f}", "memory": memory, **cells},
            )
        ratios.append(min(best, longest) / mine.aimed)
    yield Row("To the aim, times faster", {"than": "GenTen", "ratio": Spread.of(ratios)})
    yield Verdict("times faster than GenTen", float(np.median(ratios)), GENTEN_TIMES)
