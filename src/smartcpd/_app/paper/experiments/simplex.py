"""Columns on the simplex: stochastic against block mirror descent."""

from __future__ import annotations

from smartcpd import datasets
from smartcpd._app.paper import contenders as who
from smartcpd._app.paper.contenders import Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import draw_errors, error_table
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table

AIMS = (1e-2, 1e-3, 1e-4)


def task(size: int, rank: int, seed: int) -> Task:
    X, truth = datasets.simplex((size,) * 3, rank, random_state=seed)
    return Task(X, rank, "poisson", truth, constraint="simplex", seed=seed)


def plan(options: Options) -> Plan:
    size, rank = (60, 6) if options.quick else (100, 10)
    lines = (
        who.smartcpd(step="adagrad"),
        who.block_md(),
        who.smartcpd_defaults(),
        who.auto(),
    )
    panel = Panel(
        "simplex",
        f"probabilities without noise, {size}x{size}x{size}, R={rank}, columns on the simplex",
        lambda seed: task(size, rank, seed),
        lines,
    )
    trials, limit = (2, 1.5) if options.quick else (20, 20.0)
    remark = (
        "SmartCPD's adagrad constant b is a thousandth of the first squared gradients: the paper's "
        "1e-5 depends on the scale of the data, and at the scale of probabilities nothing moves."
    )
    return Plan((panel,), trials, limit, (remark,))


def tables(plan: Plan, runs: Runs) -> list[Table]:
    note = (
        "The paper prints no figures here; it states that SmartCPD converges much faster than "
        "block mirror descent. GCP-OPT and GGN do not serve this constraint."
    )
    return [error_table("simplex_mse", plan, runs, AIMS, note)]


EXPERIMENT = Experiment(
    "simplex",
    "columns on the simplex: stochastic against block mirror descent",
    "the figure of MSE with simplex constraint",
    plan,
    draw_errors("simplex"),
    tables,
)
