"""Functions that judge claims about real data, where only the loss tells how good a model is."""

from __future__ import annotations

import numpy as np

from smartcpd._app.paper import lines
from smartcpd._app.paper.experiments.real import times_to
from smartcpd._app.paper.findings import GCP, GGN, SMART, Finding, Judge, Variant, ratio_of_times
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import number

FAR = 0.05
"""A loss that is higher by more than this share belongs to another optimum, not to a later
moment.
"""


def lower_cost(runs: Runs, variant: Variant) -> Finding | None:
    """SmartCPD ends at a lower cost than GCP-OPT and GGN, at both ranks."""
    shown, agrees = [], True
    for panel in runs.panels:
        ends = {s: runs.finals(panel, variant(s), "loss") for s in (SMART, GCP, GGN)}
        if not all(e.size for e in ends.values()):
            return None
        medians = {s: float(np.median(e)) for s, e in ends.items()}
        shown.append(f"{panel}: " + ", ".join(f"{s} {number(m, 4)}" for s, m in medians.items()))
        agrees = agrees and medians[SMART] <= min(medians.values())
    return Finding(f"median loss in the end, {'; '.join(shown)}", agrees) if shown else None


def ratio_on_real(rival: str, least: float, in_all_trials: bool = False) -> Judge:
    """Judge how much longer a rival takes to where it ends than SmartCPD to that loss, by medians
    or in every trial.

    GGN may converge far above SmartCPD; it is not judged by how soon it gave up.
    """

    def judge(runs: Runs, variant: Variant) -> Finding | None:
        found = []
        for panel in runs.panels:
            names = variant(SMART), variant(rival)
            mine, theirs = (times_to(runs, panel, s, names[1]) for s in names)
            if not mine.size or not theirs.size:
                return None
            ends = [float(np.median(runs.finals(panel, s, "loss"))) for s in names]
            if rival == GGN and ends[1] > ends[0] + FAR * abs(ends[0]):
                text = f"{panel}: {rival} never gets to where SmartCPD ends"
                text += f" ({number(ends[1], 3)} against {number(ends[0], 3)})"
                found.append(Finding(text, True))
                continue
            finding = ratio_of_times(mine, theirs, least, f"to where {rival} ends, {panel}")
            if finding is not None and in_all_trials:
                slowest = float(np.min(theirs / mine))
                finding = Finding(
                    f"{finding.ours}, least of all trials {slowest:.2g}x", slowest >= least
                )
            if finding is not None:
                found.append(finding)
        if not found:
            return None
        return Finding("; ".join(f.ours for f in found), all(f.agrees for f in found))

    return judge


def ggn_fails(runs: Runs, variant: Variant) -> Finding | None:
    """In some trials at R=5 GGN does not converge: it ends far above the best loss of all."""
    panel = "R=5"
    ends = runs.finals(panel, variant(GGN), "loss")
    if not ends.size:
        return None
    lowest = min(float(np.nanmin(run.loss)) for run in runs.of(panel))
    failed = int(np.sum(ends > lowest + FAR * abs(lowest)))
    ours = f"{failed} of {ends.size} trials end more than 5 % above the lowest loss, {panel}"
    return Finding(ours, failed > 0)


def rivals_work(runs: Runs, variant: Variant) -> Finding | None:
    """GCP-OPT and GGN work reasonably well, for which the paper has no figure."""
    finding = lower_cost(runs, variant)
    return finding and Finding(finding.ours, None)


def printed_cost(runs: Runs, variant: Variant) -> Finding | None:
    """The one cost that the paper prints, of another period: nothing to agree with."""
    shown = []
    for panel in runs.panels:
        losses = runs.finals(panel, variant(SMART), "loss")
        times = runs.finals(panel, variant(SMART), "time")
        if not losses.size:
            return None
        loss, seconds = float(np.median(losses)), float(np.median(times))
        shown.append(f"{panel} {number(loss, 3)} after {number(seconds)} s")
    where = "where the paper's rule stops" if variant is lines.published else "in the end"
    return Finding(f"medians {where}: {', '.join(shown)}", None)
