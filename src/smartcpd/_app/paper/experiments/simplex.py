"""Columns on the simplex: stochastic against block mirror descent."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from smartcpd import datasets
from smartcpd._app.paper import lines
from smartcpd._app.paper.contenders import Budget, Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import draw_errors, error_tables, planted_task


def simplex_task(size: int, rank: int, seed: int) -> Task:
    """Return the task, whose start has the paper's columns: uniform, then normalised."""
    task = planted_task(datasets.simplex, "poisson", size, rank, seed, constraint="simplex")
    assert task.start is not None
    return replace(task, start=[A / A.sum(axis=0) for A in task.start])


def plan(options: Options) -> Plan:
    size, rank = (60, 6) if options.quick else (100, 10)
    racing = (
        lines.smartcpd_published(step="adagrad(1)"),
        lines.block_md_published(),
        lines.smartcpd_tuned(),
        lines.block_md_tuned(),
        lines.auto(),
    )
    panel = Panel(
        "simplex",
        f"probabilities without noise, {size}x{size}x{size}, R={rank}, columns on the simplex",
        partial(simplex_task, size, rank),
        racing,
        Budget(1.5, 200) if options.quick else Budget(3.0, 1000),
    )
    remark = (
        "Here b cannot be the paper's 1e-5, not even in SmartCPD as published: b has the units of "
        "a squared gradient, which at the scale of probabilities is tiny, and nothing moves. It is "
        "set by the size of the first gradients."
    )
    return Plan((panel,), 2 if options.quick else 20, (remark,))


EXPERIMENT = Experiment(
    "simplex",
    "columns on the simplex: stochastic against block mirror descent",
    "the figure of MSE with simplex constraint",
    plan,
    partial(draw_errors, "simplex"),
    partial(
        error_tables,
        "simplex_mse",
        (1e-2, 1e-4),
        "The paper prints no figures here; it states that SmartCPD converges much faster than "
        "block mirror descent. GCP-OPT and GGN do not serve this constraint.",
    ),
)
