"""Figures and tables of experiments that measure the error of the factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from smartcpd._app.paper import figures
from smartcpd._app.paper.experiment import Panel, Plan
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, number, seconds, summaries

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_errors(name: str) -> Callable[[Plan, Runs], dict[str, Figure]]:
    """Make the function that draws the error of the only panel against time and against entries."""

    def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
        (panel,) = plan.panels
        return {name: against_both_scales(panel, runs, panel.data[0].upper() + panel.data[1:])}

    return draw


def against_both_scales(panel: Panel, runs: Runs, title: str, aim: float | None = None) -> Figure:
    """Draw the error against time on the left, and against entries sampled on the right."""
    figure = figures.blank(2, sharey=True)
    left, right = figure.axes
    figures.draw_runs(left, runs, panel, labels=False, aim=aim)
    figures.draw_runs(right, runs, panel, scale="entries", aim=aim)
    right.set_ylabel("")
    figure.suptitle(title, fontsize=figures.TEXT + 1)
    return figure


def error_table(name: str, plan: Plan, runs: Runs, aims: tuple[float, ...], note: str) -> Table:
    """Return errors at the end and medians of the times to some errors, a line for each solver."""
    header = ["data", "solver", "MSE, mean", "median", *(f"time to {aim:g}" for aim in aims)]
    rows = []
    for panel in plan.panels:
        for contender in panel.contenders:
            solver = contender.name
            found = summaries(runs.finals(panel.name, solver, "mse"))
            times = [seconds(runs.seconds_to(panel.name, solver, "mse", aim)) for aim in aims]
            if contender.reference:
                times = [""] * len(aims)
            rows.append([panel.name, solver, *map(number, found), *times])
    return Table(name, "MSE of the factors in the end", header, rows, note)
