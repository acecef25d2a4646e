"""Data to try things on: simulated with known factors, and the real data of the paper."""

from smartcpd.datasets.chicago import chicago_crime
from smartcpd.datasets.events import PlantedEvents, events
from smartcpd.datasets.flower_visits import pollinators
from smartcpd.datasets.planted import Planted, binary, count, gamma, gaussian, simplex
from smartcpd.datasets.real import RealData
from smartcpd.datasets.stand_ins import stand_in
from smartcpd.datasets.uci import uci_chat

__all__ = [
    "Planted",
    "PlantedEvents",
    "RealData",
    "binary",
    "chicago_crime",
    "count",
    "events",
    "gamma",
    "gaussian",
    "pollinators",
    "simplex",
    "stand_in",
    "uci_chat",
]
