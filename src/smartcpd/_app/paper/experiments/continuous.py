"""Positive data with gamma noise: Jensen steps, adagrad steps, and one after the other."""

from __future__ import annotations

from functools import partial

from smartcpd import datasets
from smartcpd._app.paper import contenders as who
from smartcpd._app.paper import peer_lines
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import draw_errors, error_tables, planted_task

RATE = 3e-2
"""The learning rate of GCP-OPT: the best of 1e-3, 3e-3, 1e-2 and 3e-2 at 100x100x100, on data that
is not among the trials.
"""


def plan(options: Options) -> Plan:
    size, rank = (50, 6) if options.quick else (300, 20)
    lines = (
        who.smartcpd("SmartCPD, Jensen", mirror="auto", step="jensen"),
        who.smartcpd("SmartCPD, adagrad", mirror="quadratic", step="adagrad"),
        who.smartcpd("SmartCPD, mixed", mirror="auto", step="mixed"),
        who.gcp_opt(RATE),
        who.ggn(),
        who.auto(),
        who.from_truth(),
        *(peer_lines.dense("gamma") if options.peers else ()),
    )
    panel = Panel(
        "gamma",
        f"gamma noise at 20 dB, {size}x{size}x{size}, R={rank}, loss gamma (beta = 0)",
        partial(planted_task, datasets.gamma, "gamma", size, rank, snr=20.0),
        lines,
    )
    trials, limit = (2, 0.8) if options.quick else (20, 30.0)
    return Plan((panel,), trials, limit)


EXPERIMENT = Experiment(
    "continuous",
    "positive data with gamma noise: Jensen, adagrad and mixed steps",
    "the figure of MSE of continuous data with multiplicative gamma noise",
    plan,
    draw_errors("continuous"),
    error_tables(
        "continuous_mse",
        (1e-2, 1e-3),
        "The paper prints no figures here; it states that both stochastic methods are faster than "
        "GGN, that SmartCPD with Jensen steps is faster still but levels off, and that the mixed "
        "steps are the best in time and in error.",
    ),
)
