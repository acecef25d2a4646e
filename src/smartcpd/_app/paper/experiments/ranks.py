"""How often a component is missed as the rank grows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from smartcpd import datasets
from smartcpd._app.paper import figures, lines
from smartcpd._app.paper.contenders import Budget
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import error_tables, planted_task
from smartcpd._app.paper.experiments.count import SCALE
from smartcpd._app.paper.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKS = (5, 10, 20, 30, 40, 60)


def plan(options: Options) -> Plan:
    size, ranks = (40, (3, 6)) if options.quick else (100, RANKS)
    racing = (lines.smartcpd_published(), lines.smartcpd_tuned(), lines.auto())
    panels = tuple(
        Panel(
            f"R={rank}",
            f"Poisson counts, {size}x{size}x{size}, R={rank}, as in the count experiment",
            partial(planted_task, datasets.count, "poisson", size, rank, scale=SCALE),
            racing,
            Budget(0.5, 60) if options.quick else Budget(2.5, 100),
        )
        for rank in ranks
    )
    remark = (
        "Not in the paper: the count experiment at more ranks, to see how often a run ends with a "
        "true component missing."
    )
    return Plan(panels, 2 if options.quick else 20, (remark,))


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    """Draw the share of trials that miss a component against the rank."""
    figure = figures.blank(1, width=0.75 * figures.FULL_WIDTH)
    (ax,) = figure.axes
    for position, contender in enumerate(plan.panels[0].contenders):
        found = [
            (int(panel.name.removeprefix("R=")), runs.finals(panel.name, contender.name, "missed"))
            for panel in plan.panels
        ]
        known = [(rank, 100.0 * float(np.mean(m > 0))) for rank, m in found if m.size]
        style = figures.style_of(contender.name, position)
        # Lines may lie on each other: rings of different sizes show all of them.
        ax.plot(
            *zip(*known, strict=True),
            color=style.colour,
            ls=style.dash,
            marker="o",
            mfc="none",
            ms=10 - 3 * position,
            label=contender.name,
        )
    ax.set_xticks([int(panel.name.removeprefix("R=")) for panel in plan.panels])
    ax.set(xlabel="Rank", ylabel="Trials that miss a component (%)", ylim=(-4, 104))
    ax.legend(frameon=False, fontsize=figures.TEXT)
    return {"ranks": figure}


EXPERIMENT = Experiment(
    "ranks",
    "how often a component is missed as the rank grows",
    "nothing; a question that a referee would ask",
    plan,
    draw,
    partial(
        error_tables,
        "ranks_mse",
        (1e-2,),
        "A component is missed if its partner is farther away than half the usual distance between "
        "two true ones.",
    ),
)
