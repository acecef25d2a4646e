"""Data to try things on."""

from smartcpd.datasets.events import PlantedEvents, events
from smartcpd.datasets.planted import Planted, binary, count, gamma, gaussian, simplex

__all__ = [
    "Planted",
    "PlantedEvents",
    "binary",
    "count",
    "events",
    "gamma",
    "gaussian",
    "simplex",
]
