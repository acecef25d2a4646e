"""Zeros and ones: error of the factors against time, and its distribution after the run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd import datasets
from smartcpd._app.paper import figures, lines, peer_lines
from smartcpd._app.paper.contenders import Budget, Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import error_tables, planted_task
from smartcpd._app.paper.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DENSITY = {0.2: 5, 0.3: 15, 0.4: 28, 0.5: 40}
"""Per cent of ones that the paper states for each A_max."""
RATE = 1e-2
"""The learning rate of GCP-OPT, tuned: the best of 1e-3, 3e-3, 1e-2 and 3e-2 at A_max=0.3, on data
that is not among the trials.
"""
AIM = 0.067
"""The paper's 0.01, if it is on the scale of the authors' code: that is 3/20 of ours at R = 20. An
MSE of 0.01 on our scale is below the limit of the data.
"""
SHOWN = "A_max=0.3"
BINS = 5
"""Number of bins for each power of ten."""


def plan(options: Options) -> Plan:
    size, rank, all_a = (60, 8, (0.3, 0.5)) if options.quick else (100, 20, tuple(DENSITY))
    racing = (
        lines.smartcpd_published(),
        *lines.all_others(RATE, ggn=False),
        lines.from_truth(),
        *(peer_lines.dense("bernoulli-odds") if options.peers else ()),
    )
    panels = []
    for a_max in all_a:
        make = partial(
            planted_task, datasets.binary, "bernoulli-odds", size, rank, scale=a_max, a_max=a_max
        )
        data = (
            f"zeros and ones, {size}x{size}x{size}, R={rank}, A_max={a_max:g} "
            f"({ones(make(options.seed)):.0f} % ones)"
        )
        budget = Budget(0.8, 100) if options.quick else Budget(4.0, 300)
        panels.append(Panel(f"A_max={a_max:g}", data, make, racing, budget))
    return Plan(tuple(panels), 2 if options.quick else 20)


def ones(task: Task) -> float:
    return 100.0 * float(np.mean(np.asarray(task.X)))


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    panel = next(p for p in plan.panels if p.name == SHOWN)
    over_time = figures.blank(1, width=0.75 * figures.FULL_WIDTH)
    (ax,) = over_time.axes
    figures.draw_runs(ax, runs, panel, aim=AIM)
    ax.set_title(panel.data[0].upper() + panel.data[1:], fontsize=figures.TEXT + 1)
    return {"binary": over_time, "binary_histograms": histograms(plan, runs)}


def histograms(plan: Plan, runs: Runs) -> Figure:
    """Draw a row of axes, one for each density, with bars of all solvers next to each other."""
    from matplotlib.ticker import MaxNLocator

    figure = figures.blank(len(plan.panels), height=2.6, sharex=True, sharey=True)
    solvers = [c.name for c in plan.panels[0].contenders if not c.reference]
    every = np.concatenate([runs.finals(p.name, s, "mse") for p in plan.panels for s in solvers])
    low, high = np.floor(np.log10(every.min())), np.ceil(np.log10(every.max()))
    bins = np.logspace(low, high, int(high - low) * BINS + 1)
    for ax, panel in zip(figure.axes, plan.panels, strict=True):
        bars: Any = ax.hist(
            [runs.finals(panel.name, solver, "mse") for solver in solvers],
            bins=bins.tolist(),
            label=solvers,
            rwidth=0.9,
        )[2]
        for solver, drawn in zip(solvers, bars, strict=True):
            style = figures.style_of(solver, 0)
            hollow = style.dash == "--"
            for bar in drawn:
                bar.set(facecolor="white" if hollow else style.colour, edgecolor=style.colour)
        share = panel.data.rsplit("(", 1)[1].rstrip(")")
        ax.set(xscale="log", xlabel=figures.ERROR)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_title(f"{panel.name}, {share}", fontsize=figures.TEXT)
    figure.axes[0].set_ylabel("Trials")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside upper center", ncols=3, frameon=False, fontsize=figures.TEXT
    )
    return figure


EXPERIMENT = Experiment(
    "binary",
    "zeros and ones of four densities, MSE against time, histograms of MSE",
    "the figure of MSE over time at 15 % ones and the histograms of the supplement",
    plan,
    draw,
    partial(
        error_tables,
        "binary_mse",
        (AIM,),
        "The paper prints no figures here; it states that SmartCPD needs much less time to an MSE "
        "of 0.01 at 15 % ones, that it is consistently ahead after 60 s, and that its advantage "
        "grows with the share of ones. GGN of the paper does not serve this loss. 0.067 is 0.01 on "
        "the scale of the authors' code.",
    ),
)
