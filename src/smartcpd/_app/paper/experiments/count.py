"""Counts: error of the factors against time and entries read, and after the run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from smartcpd import datasets
from smartcpd._app.paper import figures, lines, peer_lines
from smartcpd._app.paper.breakdown import PARTS, Breakdown, measured
from smartcpd._app.paper.contenders import Budget, Contender
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments import common
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {
    "SmartCPD": {10: ("2.7e-3", "2.7e-3"), 20: ("3.7e-3", "3.7e-3"), 50: ("6.6e-3", "6.5e-3")},
    "GCP-OPT": {10: ("9.6e-3", "2.3e-3"), 20: ("0.028", "3.3e-3"), 50: ("0.408", "0.406")},
    "GGN": {10: ("0.023", "1.9e-3"), 20: ("0.031", "6.5e-3"), 50: ("0.288", "0.281")},
}
"""Mean and median MSE that the paper prints after 100 s, which belong to the solvers as
published.
"""
RATE = 1e-2
"""The learning rate of GCP-OPT, tuned: the best of 1e-3, 3e-3, 1e-2 and 3e-2 at R=20, on data that
is not among the trials.
"""
SCALE = 0.5
"""A_max of the factors and of the start."""
AIM = 1e-2
FEW_EPOCHS = 100
"""Epochs after which errors are tabled besides those in the end."""
BUDGETS = {10: Budget(3.0, 500), 20: Budget(4.0, 500), 50: Budget(16.0, 1500)}


def plan(options: Options) -> Plan:
    size, ranks = (60, (10,)) if options.quick else (100, tuple(BUDGETS))
    make = partial(common.planted_task, datasets.count, "poisson", size)
    panels = tuple(
        Panel(
            f"R={rank}",
            f"Poisson counts, {size}x{size}x{size}, R={rank}, factors U(0, 0.5) with 5 % U(0, 5)",
            partial(make, rank, scale=SCALE),
            racing(options),
            Budget(1.0, 200) if options.quick else BUDGETS[rank],
        )
        for rank in ranks
    )
    rank = ranks[len(ranks) // 2]
    example = make(rank, options.seed)
    parts = measured(np.asarray(example.X), rank, 5 if options.quick else 21, options.seed)
    return Plan(panels, 3 if options.quick else 20, extra=parts)


def racing(options: Options) -> tuple[Contender, ...]:
    return (
        lines.smartcpd_published(),
        *lines.all_others(RATE, ggn=True),
        lines.from_truth(),
        *(peer_lines.dense("poisson") if options.peers else ()),
    )


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    drawn = {}
    for panel in plan.panels:
        title = f"Counts, {panel.data.split(', ')[1]}, {panel.name}"
        drawn[f"count_{panel.name.removeprefix('R=')}"] = common.against_both_scales(
            panel, runs, title, AIM
        )
    return {**drawn, "count_iteration": draw_parts(plan.extra)}


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
    ax.set_xlabel("Time per iteration (µs, compiled, one thread)", fontsize=figures.TEXT)
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
    more = (
        ("the paper's mean", partial(printed, 0)),
        ("its median", partial(printed, 1)),
        (f"median after {FEW_EPOCHS} epochs", after_few_epochs),
    )
    note = (
        "The paper's figures are for 100x100x100 after 100 s of MATLAB, and belong to the solvers "
        "as published. Times and entries are medians to a model with an MSE of "
        f"{AIM:g}, with the number of trials that got there where not all did. The limit is the "
        "optimum next to the true factors: with this much data, no method can do much better. A "
        "component is missed if its partner is farther away than half the usual distance between "
        "two true ones."
    )
    errors = common.error_tables("count_mse", (AIM,), note, plan, runs, more=more)
    return [*errors, parts_table(plan.extra)]


def printed(place: int, runs: Runs, panel: Panel, contender: Contender) -> str:
    """Return what the paper prints for this solver and rank, if anything."""
    name, _, variant = contender.name.partition(", ")
    rank = int(panel.name.removeprefix("R="))
    found = PAPER.get(name, {}).get(rank)
    return found[place] if found and variant == lines.PUBLISHED else ""


def after_few_epochs(runs: Runs, panel: Panel, contender: Contender) -> str:
    """Return the median error when a solver had read as many entries as some epochs have."""
    if contender.reference:
        return ""
    size = int(panel.data.split(", ")[1].split("x")[0])
    read = FEW_EPOCHS * size**3
    errors = [run.after("mse", read, "entries") for run in runs.of(panel.name, contender.name)]
    return number(float(np.median(errors)))


def parts_table(found: list[Breakdown]) -> Table:
    rows = [
        [b.method, *(f"{b.parts[part]:.1f} µs" for part in PARTS), f"{b.total:.1f} µs"]
        for b in found
    ]
    return Table(
        "count_iteration",
        "Time of an iteration, by part",
        ["method", *PARTS, "in all"],
        rows,
        "Processor time of this package's compiled loops on one thread, as many entries for both, "
        "medians. Sampling is drawing and reading entries; an iteration that reads a single fiber, "
        "or a single entry, takes as long as the update; the rest is the gradient.",
    )


EXPERIMENT = Experiment(
    "count",
    "Poisson counts, MSE against time and entries, for R = 10, 20, 50",
    "the figures of MSE over time and over samples and of time per iteration, the table of MSE",
    plan,
    draw,
    tables,
)
