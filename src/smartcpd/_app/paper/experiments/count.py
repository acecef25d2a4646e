"""Counts: error of the factors against time and entries sampled, and after the run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from smartcpd import datasets
from smartcpd._app.paper import contenders as who
from smartcpd._app.paper import figures, peer_lines
from smartcpd._app.paper.breakdown import PARTS, Breakdown, measured
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments import common
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {
    "SmartCPD": {10: ("2.7e-3", "2.7e-3"), 20: ("3.7e-3", "3.7e-3"), 50: ("6.6e-3", "6.5e-3")},
    "GCP-OPT": {10: ("9.6e-3", "2.3e-3"), 20: ("0.028", "3.3e-3"), 50: ("0.408", "0.406")},
    "GGN": {10: ("0.023", "1.9e-3"), 20: ("0.031", "6.5e-3"), 50: ("0.288", "0.281")},
}
"""Mean and median MSE that the paper prints after 100 s."""
RATE = 1e-2
"""The learning rate of GCP-OPT: the best of 1e-3, 3e-3, 1e-2 and 3e-2 at R=20, on data that is not
among the trials.
"""
AIM = 1e-2


class Iterations(NamedTuple):
    """How an iteration divides its time, and how many entries it reads."""

    parts: list[Breakdown]
    n_entries: int


def plan(options: Options) -> Plan:
    size, ranks = (60, (10,)) if options.quick else (100, (10, 20, 50))
    make = partial(common.planted_task, datasets.count, "poisson", size)
    lines = (
        who.smartcpd(),
        who.gcp_opt(RATE),
        who.ggn(),
        who.smartcpd_defaults(),
        who.auto(),
        who.from_truth(),
        *(peer_lines.dense("poisson") if options.peers else ()),
    )
    panels = tuple(
        Panel(
            f"R={rank}",
            f"Poisson counts, {size}x{size}x{size}, R={rank}, factors U(0, 0.5) with 5 % U(0, 5)",
            partial(make, rank),
            lines,
        )
        for rank in ranks
    )
    rank = ranks[len(ranks) // 2]
    example = make(rank, options.seed)
    parts = measured(np.asarray(example.X), rank, 100 if options.quick else 1000, options.seed)
    trials, limit = (3, 1.5) if options.quick else (20, 20.0)
    return Plan(panels, trials, limit, extra=Iterations(parts, example.n_entries))


def shown_panel(plan: Plan) -> Panel:
    """Return the panel that the paper draws, R=20, if it is there."""
    return plan.panels[len(plan.panels) // 2]


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    panel = shown_panel(plan)
    title = f"Counts, {panel.data.split(', ')[1]}, {panel.name}"
    errors = common.against_both_scales(panel, runs, title, AIM)
    return {"count": errors, "count_iteration": draw_parts(plan.extra.parts)}


def draw_parts(found: list[Breakdown]) -> Figure:
    """Draw bars of the parts of an iteration."""
    figure = figures.blank(1, width=figures.COLUMN_WIDTH, height=2.0)
    (ax,) = figure.axes
    places = range(len(found))
    start = np.zeros(len(found))
    for part, tone in zip(PARTS, (figures.SKY, figures.BLUE, figures.ORANGE), strict=True):
        widths = np.array([b.parts[part] for b in found])
        ax.barh(places, widths, left=start, color=tone, height=0.55, label=part)
        start += widths
    ax.set_yticks(places, [b.method for b in found])
    ax.invert_yaxis()
    ax.set_xlabel("Time per iteration (µs, NumPy, one thread)", fontsize=figures.TEXT)
    ax.grid(axis="y", visible=False)
    ax.legend(
        fontsize=figures.TEXT,
        ncols=3,
        frameon=False,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        handlelength=1.0,
        columnspacing=1.0,
    )
    return figure


def tables(plan: Plan, runs: Runs) -> list[Table]:
    return [errors(plan, runs), parts_table(plan, runs)]


def errors(plan: Plan, runs: Runs) -> Table:
    """Return the paper's table with our figures next to its own."""
    header = ["solver", ""]
    for panel in plan.panels:
        header += [panel.name, f"paper, {panel.name}", f"time to {AIM:g}, {panel.name}"]
    rows = []
    for contender in plan.panels[0].contenders:
        means, medians = [contender.name, "mean"], ["", "median"]
        for panel in plan.panels:
            rank = int(panel.name.removeprefix("R="))
            printed = PAPER.get(contender.name, {}).get(rank, ("-", "-"))
            mean, median = common.end_errors(runs, panel, contender)
            means += [mean, printed[0], ""]
            medians += [median, printed[1], common.time_to(AIM, runs, panel, contender)]
        rows += [means, medians]
    return Table(
        "count_mse",
        "MSE of the factors in the end",
        header,
        rows,
        "The paper's figures are for 100x100x100 after 100 s. Times are medians to a model with an "
        f"MSE of {AIM:g}, with the number of trials that got there where not all did. The limit is "
        "the optimum next to the true factors: with this much data, no method can do much better.",
    )


def parts_table(plan: Plan, runs: Runs) -> Table:
    rows = []
    for found in plan.extra.parts:
        whole = [
            1e6 * run.time[-1] / (run.entries[-1] / plan.extra.n_entries)
            for run in runs.of(shown_panel(plan).name, found.method)
        ]
        times = [found.parts[part] for part in PARTS] + [found.total, float(np.median(whole))]
        rows.append([found.method, *(f"{t:.0f} µs" for t in times)])
    return Table(
        "count_iteration",
        "Time of an iteration, by part",
        ["method", *PARTS, "in all", "this package, in all"],
        rows,
        "The parts are those of both methods in plain NumPy on one thread, as many entries each, "
        "medians. This package's compiled iterations do not stop between the parts; theirs is the "
        "time of a run over its iterations, looks at the loss included.",
    )


EXPERIMENT = Experiment(
    "count",
    "Poisson counts, MSE against time and samples, for R = 10, 20, 50",
    "the figures of MSE over time and over samples and of time per iteration, the table of MSE",
    plan,
    draw,
    tables,
)
