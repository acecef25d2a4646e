"""The experiments: one a file on simulated data, and one for each of the real data sets."""

from smartcpd._app.paper.experiment import Experiment
from smartcpd._app.paper.experiments import (
    binary,
    continuous,
    contours,
    count,
    ranks,
    sensitivity,
    simplex,
    steps,
    theory,
)
from smartcpd._app.paper.experiments.real import experiment
from smartcpd._app.paper.experiments.real_cases import CASES
from smartcpd.errors import InvalidParameterError

_PAPERS = (count, binary, continuous, simplex, steps, contours)
_REFEREES = (sensitivity, ranks, theory)
"""Questions that the paper leaves open."""
_ALL = (
    *(module.EXPERIMENT for module in _PAPERS),
    *map(experiment, CASES),
    *(module.EXPERIMENT for module in _REFEREES),
)
EXPERIMENTS: dict[str, Experiment] = {found.name: found for found in _ALL}

__all__ = ["EXPERIMENTS", "get"]


def get(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InvalidParameterError(
            f"Unknown experiment {name!r}. Experiments: {', '.join(EXPERIMENTS)}."
        )
    return EXPERIMENTS[name]
