"""Tasks, figures and tables of experiments that measure the error of the factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd._app.paper import figures
from smartcpd._app.paper.contenders import Contender, Factors, Task
from smartcpd._app.paper.experiment import Panel, Plan
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, amount, seconds, summaries
from smartcpd.datasets import Planted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Column = tuple[str, Callable[[Runs, Panel, Contender], str]]
"""A column of a table: its name, and what it says of a solver's runs."""


def planted_task(
    make: Callable[..., Planted],
    loss: str,
    size: int,
    rank: int,
    seed: int,
    *,
    scale: float = 1.0,
    constraint: str = "auto",
    **choices: Any,
) -> Task:
    """Return the task to find the factors of simulated data, a cube of this size, from the paper's
    start, ``scale`` times U(0, 1).

    ``choices`` are parameters of the function of `smartcpd.datasets` that makes the data.
    """
    shape = (size,) * 3
    X, truth = make(shape, rank, random_state=seed, **choices)
    start = uniform_start(shape, rank, seed, scale)
    return Task(X, rank, loss, truth, constraint=constraint, start=start, seed=seed)


def uniform_start(shape: Sequence[int], rank: int, seed: int, scale: float = 1.0) -> Factors:
    """Return factors from ``scale`` times U(0, 1).

    The numbers are of a stream of their own: planted data of the same seed has factors from that
    seed's first numbers.
    """
    (rng,) = np.random.default_rng(seed).spawn(1)
    return [scale * rng.random((n, rank)) for n in shape]


def draw_errors(name: str, plan: Plan, runs: Runs) -> dict[str, Figure]:
    """Draw the error of the only panel against time and against entries."""
    (panel,) = plan.panels
    return {name: against_both_scales(panel, runs, panel.data[0].upper() + panel.data[1:])}


def against_both_scales(panel: Panel, runs: Runs, title: str, aim: float | None = None) -> Figure:
    """Draw the error against time on the left, and against entries read on the right."""
    figure = figures.blank(2, height=3.0, sharey=True)
    left, right = figure.axes
    figures.draw_runs(left, runs, panel, labels=False, aim=aim)
    figures.draw_runs(right, runs, panel, scale="entries", aim=aim)
    right.set_ylabel("")
    figure.suptitle(title, fontsize=figures.TEXT + 1)
    return figure


def draw_titled(
    figure: Figure, titles: dict[str, str], plan: Plan, runs: Runs, **choices: Any
) -> Figure:
    """Draw each panel into axes of its own, under its title."""
    for ax, panel in zip(figure.axes, plan.panels, strict=True):
        figures.draw_runs(ax, runs, panel, **choices)
        ax.set_title(titles[panel.name], fontsize=figures.TEXT + 1)
    return figure


def error_tables(
    name: str,
    aims: tuple[float, ...],
    note: str,
    plan: Plan,
    runs: Runs,
    *,
    more: Sequence[Column] = (),
) -> list[Table]:
    """Return a table of errors in the end, of trials that miss a component, and of medians of the
    times and entries to some errors, a line for each solver that has run.
    """
    columns: list[Column] = [
        ("trials", lambda r, p, c: str(len(r.of(p.name, c.name)))),
        ("MSE, mean", partial(end_error, np.mean)),
        ("median", partial(end_error, np.median)),
        ("miss a component", missing),
        *more,
    ]
    for aim in aims:
        columns.append((f"time to {aim:g}", partial(time_to, aim)))
        columns.append((f"entries to {aim:g}", partial(entries_to, aim)))
    rows = [
        [panel.name, contender.name, *(say(runs, panel, contender) for _, say in columns)]
        for panel in plan.panels
        for contender in panel.contenders
        if runs.of(panel.name, contender.name)
    ]
    header = ["data", "solver", *(title for title, _ in columns)]
    return [Table(name, "MSE of the factors in the end", header, rows, note)]


def end_error(
    function: Callable[[np.ndarray], Any], runs: Runs, panel: Panel, contender: Contender
) -> str:
    """Return the mean, say, of the errors in the end, as a table shows it."""
    return summaries(runs.finals(panel.name, contender.name, "mse"), (function,))[0]


def missing(runs: Runs, panel: Panel, contender: Contender) -> str:
    """Return in how many trials at least one true component was not found."""
    missed = runs.finals(panel.name, contender.name, "missed")
    return f"{int((missed > 0).sum())} of {missed.size}"


def time_to(aim: float, runs: Runs, panel: Panel, contender: Contender) -> str:
    """Return the median time to an error, as a table shows it; a reference is not timed."""
    times = runs.seconds_to(panel.name, contender.name, "mse", aim)
    return "" if contender.reference else seconds(times)


def entries_to(aim: float, runs: Runs, panel: Panel, contender: Contender) -> str:
    """Return the median number of entries read until an error is reached."""
    entries = runs.entries_to(panel.name, contender.name, "mse", aim)
    return "" if contender.reference else amount(entries)
