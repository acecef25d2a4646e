"""Functions that judge claims about step rules, mirror maps and the theorem."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from smartcpd._app.paper import lines
from smartcpd._app.paper.experiments import contours, theory
from smartcpd._app.paper.experiments.continuous import JENSEN, MIXED
from smartcpd._app.paper.experiments.steps import updates
from smartcpd._app.paper.findings import GCP, GGN, MUCH, SMART, Finding, Variant
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import number

PANEL = "gamma"
EARLY, LATE = 0.1, 1e-2
"""Errors that stand for the beginning of a run and for its later part."""
LEVEL = 1.25
"""A line that falls by less than this factor in the second half of its entries has levelled off."""
SLIGHTLY = 0.1
"""Parts of an iteration that differ by less than this share take as long as each other."""
RATE = -0.4
"""The power of T at which a measure counts as falling like 1/√T."""


def faster_than_ggn(runs: Runs, variant: Variant) -> Finding | None:
    """Both stochastic methods get to an error before GGN does, on gamma data."""
    names = {s: _gamma_name(s, variant) for s in (SMART, GCP, GGN)}
    times = {s: _time(runs, name, LATE) for s, name in names.items()}
    if any(t is None for t in times.values()):
        return None
    mine, theirs, ggn = (float(t or 0) for t in times.values())
    shown = ", ".join(f"{names[s]} {_seconds(float(t or 0))}" for s, t in times.items())
    return Finding(f"median time to {LATE:g}: {shown}", max(mine, theirs) < ggn)


def ahead_early(runs: Runs, variant: Variant) -> Finding | None:
    """SmartCPD is faster than GCP-OPT, especially in the beginning, on gamma data."""
    mine = JENSEN if variant is lines.published else variant(SMART)
    times = {aim: [_time(runs, s, aim) for s in (mine, variant(GCP))] for aim in (EARLY, LATE)}
    if any(t is None for pair in times.values() for t in pair):
        return None
    shown = "; ".join(
        f"to {aim:g} {_seconds(float(a or 0))} against {_seconds(float(b or 0))}"
        for aim, (a, b) in times.items()
    )
    agrees = all(float(a or 0) < float(b or 0) for a, b in times.values())
    return Finding(f"{mine} against {variant(GCP)}, medians: {shown}", agrees)


def jensen_levels_off(runs: Runs, variant: Variant) -> Finding | None:
    """Jensen steps alone stop improving after a while, above where mixed steps end."""
    found = runs.of(PANEL, JENSEN)
    mixed = runs.finals(PANEL, MIXED, "mse")
    if variant is lines.tuned or not found or not mixed.size:
        return None
    half = float(np.median([r.after("mse", 0.5 * r.entries[-1], "entries") for r in found]))
    end = float(np.median([r.final("mse") for r in found]))
    ours = (
        f"Jensen has {number(half)} after half its entries and {number(end)} in the end, mixed "
        f"ends at {number(float(np.median(mixed)))} (medians)"
    )
    return Finding(ours, half < LEVEL * end and float(np.median(mixed)) < end)


def mixed_is_best(runs: Runs, variant: Variant) -> Finding | None:
    """Mixed steps have the best time and error of the figure's lines."""
    names = [_gamma_name(s, variant) for s in (SMART, GCP, GGN)]
    if variant is lines.published:
        names.insert(1, JENSEN)
    ends = {s: runs.finals(PANEL, s, "mse") for s in names}
    if not all(e.size for e in ends.values()):
        return None
    medians = {s: float(np.median(e)) for s, e in ends.items()}
    times = {s: float(_time(runs, s, LATE) or np.inf) for s in names}
    best, *others = names
    agrees = medians[best] <= min(medians[s] for s in others)
    agrees = agrees and times[best] <= min(times[s] for s in others)
    shown = ", ".join(f"{s} {number(medians[s])} ({_seconds(times[s])})" for s in names)
    return Finding(f"median MSE in the end (time to {LATE:g}): {shown}", agrees)


def inner_iterations_help(runs: Runs, variant: Variant) -> Finding | None:
    """A few updates with the same fibers get to an error sooner than one."""
    panel, aim = "inner iterations", 1e-2
    if variant is lines.tuned:
        return None
    times = {n: runs.seconds_to(panel, updates(n), "mse", aim) for n in (1, 3, 5, 10)}
    entries = {n: runs.entries_to(panel, updates(n), "mse", aim) for n in times}
    if not all(t.size for t in times.values()):
        return None
    spent = {n: float(np.median(t)) for n, t in times.items()}
    read = {n: float(np.median(e)) for n, e in entries.items()}
    shown = ", ".join(f"{n}: {_seconds(spent[n])}, {number(read[n])} entries" for n in times)
    best = min(times, key=lambda n: spent[n])
    return Finding(f"median to {aim:g}, by updates a batch: {shown}", best > 1)


def same_fibers_save_entries(runs: Runs, variant: Variant) -> Finding | None:
    """Updates with the same fibers get to an error with fewer entries than with fresh ones."""
    panel, aim = "inner iterations", 1e-2
    if variant is lines.tuned:
        return None
    shown, agrees = [], True
    for n in (3, 5):
        same, fresh = (
            runs.entries_to(panel, updates(n, redrawn), "mse", aim) for redrawn in (False, True)
        )
        if not same.size or not fresh.size:
            return None
        read = float(np.median(same)), float(np.median(fresh))
        shown.append(f"{n} updates: {number(read[0])} against {number(read[1])}")
        agrees = agrees and bool(np.isfinite(read).all()) and read[0] < read[1]
    return Finding(f"median entries to {aim:g}, same against fresh, {', '.join(shown)}", agrees)


def weak_on_counts(runs: Runs, variant: Variant) -> Finding | None:
    """Jensen steps end with a higher error than adagrad on counts, more so with many zeros."""
    if variant is lines.tuned:
        return None
    factors = {}
    for panel in ("count", "many zeros"):
        jensen = runs.finals(panel, "Jensen, -log a", "mse")
        adagrad = runs.finals(panel, "adagrad, a log a", "mse")
        if not jensen.size or not adagrad.size:
            return None
        factors[panel] = float(np.median(jensen)), float(np.median(adagrad))
    shown = "; ".join(
        f"{panel}: Jensen {number(j)}, adagrad {number(a)}" for panel, (j, a) in factors.items()
    )
    return Finding(f"median MSE in the end, {shown}", all(j > a for j, a in factors.values()))


def time_split(runs: Runs, variant: Variant) -> Finding | None:
    """Both spend as long on sampling, GCP-OPT slightly longer on gradient and update."""
    rows = _rows(runs.folder / "count_iteration.csv")
    if variant is lines.tuned or not rows:
        return None
    parts = ("sampling", "gradient", "update")
    smart, gcp = (
        {part: float(row[part].split()[0]) for part in parts}
        for name in (SMART, GCP)
        for row in rows
        if row["method"] == name
    )
    ratios = {part: gcp[part] / smart[part] for part in parts}
    shown = ", ".join(f"{part} {ratio:.2g}" for part, ratio in ratios.items())
    alike = abs(np.log(ratios["sampling"])) < np.log(MUCH)
    agrees = bool(alike) and min(ratios["gradient"], ratios["update"]) > 1 + SLIGHTLY
    return Finding(f"GCP-OPT's time in units of SmartCPD's: {shown}", agrees)


def longer_steps(runs: Runs, variant: Variant) -> Finding | None:
    """One step on the bound of another map goes much farther than on that of ½a²."""
    if variant is lines.tuned:
        return None
    gains = {m.name: contours.AT - contours.next_point(m) for m in contours.MAPS}
    plain, *others = gains.values()
    shown = ", ".join(f"{name} {gain:.2g}" for name, gain in gains.items())
    ours = f"one step from ({contours.AT:g}, {contours.AT:g}) changes each entry by: {shown}"
    return Finding(ours, min(others) > MUCH * plain)


def root_t_rate(runs: Runs, variant: Variant) -> Finding | None:
    """The least measure on the way falls like 1/√T with the theorem's steps."""
    rows = _rows(runs.folder / "theory.csv")
    if variant is lines.tuned or not rows:
        return None
    powers = {
        name: theory.slope(
            [(float(r["T"]), float(r["least mean measure"])) for r in rows if r["steps"] == name]
        )
        for name in (theory.SHRINKING, theory.FIXED)
    }
    shown = ", ".join(f"{name} T^{power:.2f}" for name, power in powers.items())
    return Finding(f"falls as: {shown}", powers[theory.SHRINKING] < RATE)


def _gamma_name(solver: str, variant: Variant) -> str:
    """Return the name of a solver on gamma data, where the paper's SmartCPD has mixed steps."""
    published = variant is lines.published
    return MIXED if solver == SMART and published else variant(solver)


def _time(runs: Runs, solver: str, aim: float) -> float | None:
    times = runs.seconds_to(PANEL, solver, "mse", aim)
    return float(np.median(times)) if times.size else None


def _seconds(value: float) -> str:
    return f"{number(value)} s" if np.isfinite(value) else "never"


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table that an experiment wrote; none where it has not run."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
