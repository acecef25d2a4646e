"""Columns on the simplex: stochastic against block mirror descent."""

from __future__ import annotations

from functools import partial

from smartcpd import datasets
from smartcpd._app.paper import contenders as who
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import draw_errors, error_tables, planted_task


def plan(options: Options) -> Plan:
    size, rank = (60, 6) if options.quick else (100, 10)
    panel = Panel(
        "simplex",
        f"probabilities without noise, {size}x{size}x{size}, R={rank}, columns on the simplex",
        partial(planted_task, datasets.simplex, "poisson", size, rank, constraint="simplex"),
        (who.smartcpd(step="adagrad"), who.block_md(), who.smartcpd_defaults(), who.auto()),
    )
    trials, limit = (2, 1.5) if options.quick else (20, 20.0)
    remark = (
        "SmartCPD's adagrad constant b is a thousandth of the first squared gradients: the paper's "
        "1e-5 depends on the scale of the data, and at the scale of probabilities nothing moves."
    )
    return Plan((panel,), trials, limit, (remark,))


EXPERIMENT = Experiment(
    "simplex",
    "columns on the simplex: stochastic against block mirror descent",
    "the figure of MSE with simplex constraint",
    plan,
    draw_errors("simplex"),
    error_tables(
        "simplex_mse",
        (1e-2, 1e-3, 1e-4),
        "The paper prints no figures here; it states that SmartCPD converges much faster than "
        "block mirror descent. GCP-OPT and GGN do not serve this constraint.",
    ),
)
