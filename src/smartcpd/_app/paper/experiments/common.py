"""Tasks, figures and tables of experiments that measure the error of the factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smartcpd._app.paper import figures
from smartcpd._app.paper.contenders import Contender, Task
from smartcpd._app.paper.experiment import Panel, Plan
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, number, seconds, summaries
from smartcpd.datasets import Planted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def planted_task(
    make: Callable[..., Planted],
    loss: str,
    size: int,
    rank: int,
    seed: int,
    constraint: str = "auto",
    **choices: Any,
) -> Task:
    """Return the task to find the factors of simulated data, a cube of this size.

    ``choices`` are parameters of the function of `smartcpd.datasets` that makes the data.
    """
    X, truth = make((size,) * 3, rank, random_state=seed, **choices)
    return Task(X, rank, loss, truth, constraint=constraint, seed=seed)


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


def error_tables(
    name: str, aims: tuple[float, ...], note: str
) -> Callable[[Plan, Runs], list[Table]]:
    """Make the function that returns a table of errors at the end and of medians of the times to
    some errors, a line for each solver.
    """

    def tables(plan: Plan, runs: Runs) -> list[Table]:
        header = ["data", "solver", "MSE, mean", "median", *(f"time to {aim:g}" for aim in aims)]
        rows = []
        for panel in plan.panels:
            for contender in panel.contenders:
                times = [time_to(aim, runs, panel, contender) for aim in aims]
                errors = end_errors(runs, panel, contender)
                rows.append([panel.name, contender.name, *errors, *times])
        return [Table(name, "MSE of the factors in the end", header, rows, note)]

    return tables


def end_errors(runs: Runs, panel: Panel, contender: Contender) -> list[str]:
    """Return mean and median of the errors in the end, as a table shows them."""
    return [number(found) for found in summaries(runs.finals(panel.name, contender.name, "mse"))]


def time_to(aim: float, runs: Runs, panel: Panel, contender: Contender) -> str:
    """Return the median time to an error, as a table shows it; a reference is not timed."""
    times = runs.seconds_to(panel.name, contender.name, "mse", aim)
    return "" if contender.reference else seconds(times)
