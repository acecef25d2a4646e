"""How much the paper's method depends on the constant b of adagrad and on the number of fibers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from smartcpd import datasets
from smartcpd._app.paper import figures, lines
from smartcpd._app.paper.contenders import Budget, Contender, Snapshot, Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import draw_titled, error_tables, planted_task
from smartcpd._app.paper.experiments.count import AIM, SCALE
from smartcpd._app.paper.runs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTANTS = ("1e-9", "1e-7", "1e-5", "1e-3", "1e-1")
FIBERS = (1, 2, 4)
"""Numbers of fibers of an iteration, in multiples of the rank."""
TITLES = {"b": "(a) the constant b", "fibers": "(b) fibers an iteration"}


def by_constant() -> tuple[Contender, ...]:
    return tuple(lines.algorithm_1(f"b = {b}", step=f"adagrad(1, {b})") for b in CONSTANTS)


def by_fibers(rank: int) -> tuple[Contender, ...]:
    """Return the method with fewer and with more fibers than the paper's, which are 2R."""

    def with_fibers(times: int) -> Contender:
        name = "R fibers" if times == 1 else f"{times}R fibers"
        line = lines.algorithm_1(name)

        def run(task: Task) -> list[Snapshot]:
            return line.run(replace(task, n_fibers=times * rank))

        return replace(line, settings=f"{line.settings}, {times} R fibers", run=run)

    return tuple(map(with_fibers, FIBERS))


def plan(options: Options) -> Plan:
    size, rank = (50, 5) if options.quick else (100, 20)
    make = partial(planted_task, datasets.count, "poisson", size, rank, scale=SCALE)
    data = f"Poisson counts, {size}x{size}x{size}, R={rank}, as in the count experiment"
    budget = Budget(0.5, 40) if options.quick else Budget(4.0, 200)
    panels = (
        Panel("b", data, make, by_constant(), budget),
        Panel("fibers", data, make, by_fibers(rank), budget),
    )
    remark = (
        "Not in the paper: Algorithm 1 as published but for b, which there is 1e-5, or for the "
        "number of fibers, which there is 2R."
    )
    return Plan(panels, 2 if options.quick else 20, (remark,))


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    figure = figures.blank(2, height=2.8)
    return {"sensitivity": draw_titled(figure, TITLES, plan, runs, scale="entries", aim=AIM)}


EXPERIMENT = Experiment(
    "sensitivity",
    "how much the method depends on b and on the number of fibers",
    "nothing; a question that a referee would ask",
    plan,
    draw,
    partial(
        error_tables,
        "sensitivity_mse",
        (AIM,),
        "b has the units of a squared gradient, so that what is a good value depends on the scale "
        "of the data; these are the paper's counts.",
    ),
)
