"""Step sizes, mirror maps and inner iterations of the paper's method."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from smartcpd import datasets
from smartcpd._app.paper import contenders as who
from smartcpd._app.paper import figures
from smartcpd._app.paper.contenders import Contender, Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import error_tables
from smartcpd._app.paper.runs import Runs
from smartcpd._fitting.model import CPModel
from smartcpd.losses import get

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SNR = 40.0
TITLES = {
    "continuous": "(a) continuous data",
    "count": "(b) counts",
    "inner iterations": "(c) continuous, inner iterations",
    "many zeros": "(d) counts, mostly zeros",
}
SPARSE_SCALE = 0.5
"""The scale of the factors of counts that are mostly zeros."""


def continuous_task(size: int, rank: int, seed: int) -> Task:
    X, truth = datasets.gaussian((size,) * 3, rank, snr=SNR, random_state=seed)
    # The loss is for nonnegative data, which all but very few cells are.
    return Task(np.maximum(X, 0.0), rank, "poisson", truth, seed=seed)


def count_task(size: int, rank: int, scale: float, seed: int) -> Task:
    rng = np.random.default_rng(seed)
    truth = [scale * rng.random((size, rank)) for _ in range(3)]
    X = get("poisson").simulate(CPModel(truth).full(), rng)
    return Task(X.astype(np.uint16), rank, "poisson", truth, seed=seed)


def rules() -> tuple[Contender, ...]:
    """Return a contender for each step rule with each map that suits it."""
    return (
        who.smartcpd("adagrad, a log a", mirror="entropy", step="adagrad"),
        who.smartcpd("adagrad, ½a²", mirror="quadratic", step="adagrad"),
        who.smartcpd("constant, a log a", mirror="entropy", step="constant"),
        who.smartcpd("Jensen, -log a", mirror="burg", step="jensen"),
        who.smartcpd("constant, ½a²", mirror="quadratic", step="constant"),
        who.smartcpd("adagrad, -log a", mirror="burg", step="adagrad"),
    )


def inner(numbers: tuple[int, ...]) -> tuple[Contender, ...]:
    return tuple(
        who.smartcpd(
            f"{n} update{'s' if n > 1 else ''} a batch",
            mirror="entropy",
            step="adagrad",
            inner_iterations=n,
        )
        for n in numbers
    )


def plan(options: Options) -> Plan:
    size, rank = (50, 5) if options.quick else (100, 10)
    where = f"{size}x{size}x{size}, R={rank}, factors U(0, 1)"
    noisy = f"normal noise at {SNR:g} dB, {where}"
    few = f"Poisson counts, {size}x{size}x{size}, R={rank}, factors U(0, {SPARSE_SCALE:g})"
    numbers = (1, 3, 5) if options.quick else (1, 3, 5, 10)
    continuous = partial(continuous_task, size, rank)
    counts = partial(count_task, size, rank)
    panels = (
        Panel("continuous", noisy, continuous, rules()),
        Panel("count", f"Poisson counts, {where}", partial(counts, 1.0), rules()),
        Panel("inner iterations", noisy, continuous, inner(numbers)),
        Panel("many zeros", few, partial(counts, SPARSE_SCALE), rules()),
    )
    trials, limit = (2, 0.5) if options.quick else (20, 10.0)
    remark = (
        "Constant steps are a tenth of what would change a typical entry by its own size at the "
        "first gradient. Panel (d) is not in the paper; it is here for the paper's remark on zeros."
    )
    return Plan(panels, trials, limit, (remark,))


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    figure = figures.blank(4, height=5.2, rows=2)
    for ax, panel in zip(figure.axes, plan.panels, strict=True):
        figures.draw_runs(ax, runs, panel)
        ax.set_title(TITLES[panel.name], fontsize=figures.TEXT + 1)
    return {"steps": figure}


EXPERIMENT = Experiment(
    "steps",
    "step rules, mirror maps and inner iterations of the method",
    "the figure of step sizes, of different phi and of inner iterations",
    plan,
    draw,
    partial(
        error_tables,
        "steps_mse",
        (1e-2, 1e-3),
        "The paper prints no figures here; it states that steps of their own for each entry "
        "converge much faster than a constant one, that Jensen steps may be less competitive on "
        "counts, especially with many zeros, and that a few inner iterations can help.",
    ),
)
