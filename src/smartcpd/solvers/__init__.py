"""Solvers: the loops that fit a problem. One a file."""

from smartcpd.errors import InvalidParameterError
from smartcpd.solvers.als import als
from smartcpd.solvers.auto import auto, choice
from smartcpd.solvers.base import (
    Comparison,
    Ended,
    Observer,
    Report,
    Result,
    Settings,
    Solver,
)
from smartcpd.solvers.core import core
from smartcpd.solvers.gcp_adam import gcp_adam
from smartcpd.solvers.ggn import ggn
from smartcpd.solvers.large import large
from smartcpd.solvers.lbfgs import lbfgs
from smartcpd.solvers.md import md
from smartcpd.solvers.mm import mm
from smartcpd.solvers.nonzeros import nonzeros
from smartcpd.solvers.observed import observed
from smartcpd.solvers.online import online
from smartcpd.solvers.relaxed import relaxed
from smartcpd.solvers.relay import Relay
from smartcpd.solvers.smd import smd

_ALL = (
    auto,
    core,
    large,
    relaxed,
    observed,
    nonzeros,
    online,
    smd,
    mm,
    md,
    als,
    lbfgs,
    ggn,
    gcp_adam,
)
SOLVERS: dict[str, Solver] = {solver.name: solver for solver in _ALL}

__all__ = [
    "SOLVERS",
    "Comparison",
    "Ended",
    "Observer",
    "Relay",
    "Report",
    "Result",
    "Settings",
    "Solver",
    "choice",
    "get",
    "names",
]


def names() -> list[str]:
    return list(SOLVERS)


def get(name: str | Solver) -> Solver:
    """The solver of a name; one with settings of its own is taken as it is."""
    if isinstance(name, Solver):
        return name
    if name not in SOLVERS:
        raise InvalidParameterError(f"Unknown solver {name!r}. Names: {', '.join(SOLVERS)}.")
    return SOLVERS[name]
