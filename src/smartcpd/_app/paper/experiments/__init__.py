"""The experiments, one a file."""

from smartcpd._app.paper.experiment import Experiment
from smartcpd._app.paper.experiments import (
    binary,
    chicago,
    continuous,
    contours,
    count,
    pollinators,
    simplex,
    steps,
    uci,
)
from smartcpd.errors import InvalidParameterError

_ALL = (count, binary, continuous, simplex, steps, contours, chicago, pollinators, uci)
EXPERIMENTS: dict[str, Experiment] = {m.EXPERIMENT.name: m.EXPERIMENT for m in _ALL}

__all__ = ["EXPERIMENTS", "get"]


def get(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise InvalidParameterError(
            f"Unknown experiment {name!r}. Experiments: {', '.join(EXPERIMENTS)}."
        )
    return EXPERIMENTS[name]
