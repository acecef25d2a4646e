"""Messages between students: who wrote to whom on which day, yes or no."""

from __future__ import annotations

from smartcpd import datasets
from smartcpd._app.paper.experiments.real import RealCase, experiment

SIZE, NNZ = (400, 400, 188), 18_385

EXPERIMENT = experiment(
    RealCase(
        "uci",
        "the UCI chat network, mean loss against time, R = 10, 20",
        "the figure of convergence on the UCI chat network",
        "bernoulli-odds",
        (10, 20),
        1e-3,
        False,
        lambda fetch: datasets.uci_chat(fetch=fetch),
        lambda: datasets.stand_in(
            "the UCI chat network",
            ("sender", "receiver", "day"),
            SIZE,
            NNZ,
            binary=True,
            random_state=0,
        ),
        "The paper (400x400x196, 18,862 nonzeros): SmartCPD is at least 40 times as fast to a cost "
        "that GCP-OPT reaches later.",
    )
)
