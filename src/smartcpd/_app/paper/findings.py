"""Functions that judge a claim of the paper by the runs of an experiment.

Each is asked twice: about the solvers as published, and about those tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from smartcpd._app.paper import lines
from smartcpd._app.paper.experiments import count
from smartcpd._app.paper.runs import Run, Runs
from smartcpd._app.paper.tables import number

SMART, GCP, GGN, MD = "SmartCPD", "GCP-OPT", "GGN", "block MD"
MUCH = 2.0
"""What "much" means in a claim that states no figure: this many times."""
MANY, CONSISTENTLY = 0.25, 0.9
"""Shares of trials that "many" and "consistently" stand for."""
ORDER = 10.0


class Finding(NamedTuple):
    """What our runs say about a claim."""

    ours: str
    agrees: bool | None
    """None where the runs cannot tell."""


Variant = Callable[[str], str]
"""Returns the name that a solver runs under: `lines.published` or `lines.tuned`."""
Judge = Callable[[Runs, Variant], Finding | None]
"""Returns the finding, or None where runs that it needs are missing."""


def low_errors(runs: Runs, variant: Variant) -> Finding | None:
    """SmartCPD ends below an error of 0.01 at every rank, by mean and by median."""
    ends = {p: runs.finals(p, variant(SMART), "mse") for p in runs.panels}
    if not ends or not all(e.size for e in ends.values()):
        return None
    worst = {p: max(float(e.mean()), float(np.median(e))) for p, e in ends.items()}
    shown = [
        f"{p} {number(float(e.mean()))} and {number(float(np.median(e)))}" for p, e in ends.items()
    ]
    return Finding(f"mean and median: {'; '.join(shown)}", max(worst.values()) < 1e-2)


def rivals_at_high_rank(runs: Runs, variant: Variant) -> Finding | None:
    """GCP-OPT and GGN stay above 0.1 at R=50.

    The paper's 100 s are about 100 epochs of its GCP-OPT, by the error that it prints; as published
    it is judged there, all others in the end.
    """
    panel, cells = "R=50", 1e6
    found = {s: runs.of(panel, variant(s)) for s in (GCP, GGN)}
    if not all(found.values()):
        return None
    ends = {s: _median(r, lambda run: run.final("mse")) for s, r in found.items()}
    shown = [f"{s} {number(end)} in the end" for s, end in ends.items()]
    if variant is lines.published:
        early = _median(
            found[GCP], lambda run: run.after("mse", count.FEW_EPOCHS * cells, "entries")
        )
        shown.insert(0, f"GCP-OPT {number(early)} after {count.FEW_EPOCHS} epochs")
        ends[GCP] = early
    return Finding(f"medians: {', '.join(shown)}", min(ends.values()) > 0.1)


def ratio_to_error(
    panel: str, fast: str, slow: str, aim: float, least: float, tuned_slow: str | None = None
) -> Judge:
    """Judge whether ``slow`` takes ``least`` times as long to an error as ``fast``, by medians;
    where neither gets there, whether it ends with so many times the error.

    Names that are no solver's with variants are taken as they are; ``tuned_slow`` is the rival at
    its best then.
    """

    def judge(runs: Runs, variant: Variant) -> Finding | None:
        rival = tuned_slow if tuned_slow and variant is lines.tuned else slow
        names = [variant(s) if s in (SMART, GCP, GGN, MD) else s for s in (fast, rival)]
        where = panel if panel in runs.panels else next(iter(runs.panels), "")
        times = [runs.seconds_to(where, s, "mse", aim) for s in names]
        if not all(t.size for t in times):
            return None
        what = f"to an MSE of {aim:g}, {where}"
        if any(np.isfinite(np.median(t)) for t in times):
            return ratio_of_times(times[0], times[1], least, what)
        ends = better_in_the_end(where, names[0], names[1], least)(runs, variant)
        return ends and ends._replace(ours=f"neither gets {what}: {ends.ours}")

    return judge


def in_all_trials(runs: Runs, variant: Variant) -> Finding | None:
    """SmartCPD gets to an error of 0.01 in every trial."""
    where = _middle(runs)
    times = runs.seconds_to(where, variant(SMART), "mse", 1e-2)
    if not times.size:
        return None
    reached = int(np.isfinite(times).sum())
    return Finding(f"{reached} of {times.size} trials get to 0.01, {where}", reached == times.size)


def fewer_entries(runs: Runs, variant: Variant) -> Finding | None:
    """SmartCPD reads the fewest entries to 0.01, in many trials by an order of magnitude."""
    where = _middle(runs)
    pairs = _paired(runs, where, variant, lambda run: run.first("mse", 1e-2, "entries"))
    if not pairs.size:
        return None
    mine, theirs = (float(np.median(column)) for column in pairs.T)
    fewer = np.isfinite(pairs[:, 0]) & (pairs[:, 1] >= ORDER * pairs[:, 0])
    many = float(fewer.mean())
    ours = (
        f"{number(mine)} against {number(theirs)} entries to 0.01 (medians, {where}); 10 times "
        f"fewer in {100 * many:.0f} % of the trials"
    )
    return Finding(ours, mine < theirs and many >= MANY)


def ahead_in_pairs(runs: Runs, variant: Variant) -> Finding | None:
    """SmartCPD ends with a lower error than GCP-OPT, trial by trial, at every density."""
    shares = {}
    for panel in runs.panels:
        pairs = _paired(runs, panel, variant, lambda run: run.final("mse"))
        if not pairs.size:
            return None
        shares[panel] = float(np.mean(pairs[:, 0] < pairs[:, 1]))
    shown = ", ".join(f"{panel} {100 * share:.0f} %" for panel, share in shares.items())
    ours = f"SmartCPD ends below GCP-OPT in {shown} of the trials"
    return Finding(ours, bool(shares) and min(shares.values()) >= CONSISTENTLY)


def grows_with_density(runs: Runs, variant: Variant) -> Finding | None:
    """The ratio of errors, GCP-OPT's to SmartCPD's, is larger where the data has more ones."""
    factors = {}
    for panel in sorted(runs.panels):
        ends = _medians(runs, panel, [variant(s) for s in (SMART, GCP)])
        if ends is None:
            return None
        mine, theirs = ends.values()
        factors[panel] = theirs / mine
    if len(factors) < 2:
        return None
    values = list(factors.values())
    shown = ", ".join(f"{panel} {factor:.2g}" for panel, factor in factors.items())
    rising = sum(b > a for a, b in pairwise(values))
    agrees = values[-1] > values[0] and rising > (len(values) - 1) / 2
    return Finding(f"GCP-OPT's median error in units of SmartCPD's: {shown}", agrees)


def better_in_the_end(panel: str, better: str, worse: str, least: float = 1.0) -> Judge:
    """Judge whether a line ends with an error that is ``least`` times as low as another's."""

    def judge(runs: Runs, variant: Variant) -> Finding | None:
        ends = _medians(runs, panel, (better, worse))
        if ends is None:
            return None
        good, bad = ends.values()
        ours = f"{better} {number(good)}, {worse} {number(bad)} (median MSE in the end, {panel})"
        return Finding(ours, least * good < bad)

    return judge


def _middle(runs: Runs) -> str:
    """Return the panel that the paper draws of the counts, R=20."""
    return "R=20" if "R=20" in runs.panels else next(iter(runs.panels), "")


def _paired(runs: Runs, panel: str, variant: Variant, value: Callable[[Run], float]) -> np.ndarray:
    """Return a value of SmartCPD and of GCP-OPT, trial by trial, as rows."""
    mine, others = (
        {run.trial: value(run) for run in runs.of(panel, variant(s))} for s in (SMART, GCP)
    )
    pairs = [(found, others[trial]) for trial, found in mine.items() if trial in others]
    return np.array(pairs).reshape(-1, 2)


def _median(runs: Sequence[Run], value: Callable[[Run], float]) -> float:
    return float(np.median([value(run) for run in runs]))


def _medians(runs: Runs, panel: str, solvers: Sequence[str]) -> dict[str, float] | None:
    """Return the median error of each solver in the end; None where one has no runs."""
    ends = {s: runs.finals(panel, s, "mse") for s in solvers}
    if not all(e.size for e in ends.values()):
        return None
    return {s: float(np.median(e)) for s, e in ends.items()}


def ratio_of_times(fast: np.ndarray, slow: np.ndarray, least: float, what: str) -> Finding | None:
    if not fast.size or not slow.size:
        return None
    quick, long = float(np.median(fast)), float(np.median(slow))
    if not np.isfinite(quick):
        reached = f"{int(np.isfinite(fast).sum())} of {fast.size} trials"
        return Finding(f"{reached} get {what}", False)
    factor = long / quick
    shown = "the rival never" if not np.isfinite(factor) else f"{factor:.2g}x"
    times = f"{number(quick)} s against {number(long)}{' s' if np.isfinite(long) else ''}"
    return Finding(f"{shown} ({times} {what})", factor >= least)
