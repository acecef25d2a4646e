"""Functions that judge a claim of the paper by the runs of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from smartcpd._app.paper.experiments.real import times_to
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import number

FAR = 0.05
"""A loss that is higher by more than this share belongs to another optimum, not to a later
moment.
"""
SMART, GCP, GGN = "SmartCPD", "GCP-OPT", "GGN"


class Finding(NamedTuple):
    """What our runs say about a claim."""

    ours: str
    agrees: bool


Judge = Callable[[Runs], Finding | None]
"""Returns the finding, or None where runs that it needs are missing."""


def low_errors(runs: Runs) -> Finding | None:
    means = {p: runs.finals(p, SMART, "mse") for p in runs.panels}
    if not means or not all(m.size for m in means.values()):
        return None
    ours = ", ".join(f"{number(float(m.mean()))} ({p})" for p, m in means.items())
    return Finding(ours, all(float(m.mean()) < 1e-2 for m in means.values()))


def rivals_at_high_rank(runs: Runs) -> Finding | None:
    found = _medians(runs, "R=50", (GCP, GGN))
    if found is None:
        return None
    ours = ", ".join(f"{rival} {number(f)}" for rival, f in found.items())
    return Finding(f"medians at R=50: {ours}", min(found.values()) > 0.1)


def ratio_to_error(panel: str, fast: str, slow: str, aim: float, least: float) -> Judge:
    """Judge whether ``slow`` takes ``least`` times as long to an error as ``fast``, by medians;
    where neither gets there, whether it ends with so many times the error.
    """

    def judge(runs: Runs) -> Finding | None:
        where = panel if panel in runs.panels else next(iter(runs.panels), "")
        times = [runs.seconds_to(where, s, "mse", aim) for s in (fast, slow)]
        what = f"to an MSE of {aim:g}, {where}"
        if not all(t.size for t in times) or any(np.isfinite(np.median(t)) for t in times):
            return _ratio(times[0], times[1], least, what)
        ends = better_steps(where, fast, slow, least)(runs)
        return ends and ends._replace(ours=f"neither gets {what}: {ends.ours}")

    return judge


def fewer_samples(runs: Runs) -> Finding | None:
    where = "R=20" if "R=20" in runs.panels else next(iter(runs.panels), "")
    mine, theirs = (
        np.array([run.first("entries", "mse", 1e-2) for run in runs.of(where, solver)])
        for solver in (SMART, GCP)
    )
    return _ratio(mine, theirs, 1.0, f"entries to an MSE of 0.01, {where}", unit="")


def ratio_on_real(rival: str, least: float) -> Judge:
    """Judge how much longer a rival takes to where it ends than SmartCPD to that loss.

    GGN may converge far above SmartCPD; it is not judged by how soon it gave up.
    """

    def judge(runs: Runs) -> Finding | None:
        for panel in runs.panels:
            mine, theirs = (times_to(runs, panel, s, rival) for s in (SMART, rival))
            finding = _ratio(mine, theirs, least, f"to where {rival} ends, {panel}")
            if finding is None:
                continue
            ends = [float(np.median(runs.finals(panel, s, "loss"))) for s in (SMART, rival)]
            if rival == GGN and ends[1] > ends[0] + FAR * abs(ends[0]):
                text = f"{rival} never gets to where SmartCPD ends"
                return Finding(f"{text} ({number(ends[1], 3)} against {number(ends[0], 3)})", True)
            default = times_to(runs, panel, "auto (our default)", rival)
            factor = float(np.median(theirs) / np.median(default)) if default.size else np.nan
            return finding._replace(ours=f"{finding.ours}; our default: {number(factor)}x")
        return None

    return judge


def lower_cost(runs: Runs) -> Finding | None:
    for panel in runs.panels:
        ends = {s: runs.finals(panel, s, "loss") for s in (SMART, GCP, GGN)}
        if all(e.size for e in ends.values()):
            means = {s: float(e.mean()) for s, e in ends.items()}
            ours = ", ".join(f"{s} {number(m, 4)}" for s, m in means.items())
            return Finding(f"{ours} ({panel})", means[SMART] <= min(means.values()))
    return None


def better_steps(panel: str, better: str, worse: str, least: float = 1.0) -> Judge:
    """Judge whether a step rule ends with an error that is ``least`` times as low as another's."""

    def judge(runs: Runs) -> Finding | None:
        ends = _medians(runs, panel, (better, worse))
        if ends is None:
            return None
        good, bad = ends.values()
        ours = f"{better} {number(good)}, {worse} {number(bad)} (median MSE in the end, {panel})"
        return Finding(ours, least * good < bad)

    return judge


def mixed_is_best(runs: Runs) -> Finding | None:
    names = ("SmartCPD, mixed", "SmartCPD, Jensen", "SmartCPD, adagrad")
    ends = _medians(runs, "gamma", names)
    if ends is None:
        return None
    mixed, *others = ends.values()
    ours = f"mixed {number(mixed)}, Jensen {number(others[0])}, adagrad {number(others[1])}"
    return Finding(f"{ours} (median MSE in the end)", mixed <= min(others))


def _medians(runs: Runs, panel: str, solvers: Sequence[str]) -> dict[str, float] | None:
    """Return the median error of each solver in the end; None where one has no runs."""
    ends = {s: runs.finals(panel, s, "mse") for s in solvers}
    if not all(e.size for e in ends.values()):
        return None
    return {s: float(np.median(e)) for s, e in ends.items()}


def _ratio(
    fast: np.ndarray, slow: np.ndarray, least: float, what: str, unit: str = " s"
) -> Finding | None:
    if not fast.size or not slow.size:
        return None
    quick, long = float(np.median(fast)), float(np.median(slow))
    if not np.isfinite(quick):
        reached = f"{int(np.isfinite(fast).sum())} of {fast.size} trials"
        return Finding(f"{reached} get {what}", False)
    factor = long / quick
    shown = "the rival never" if not np.isfinite(factor) else f"{factor:.2g}x"
    times = f"{number(quick)}{unit} against {number(long)}{unit if np.isfinite(long) else ''}"
    return Finding(f"{shown} ({times} {what})", factor >= least)
