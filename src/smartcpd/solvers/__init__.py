"""Solvers: the loops that fit a problem. One a file."""

from smartcpd.errors import InvalidParameterError
from smartcpd.solvers.auto import auto
from smartcpd.solvers.base import Observer, Report, Result, Settings, Solver
from smartcpd.solvers.gcp_adam import gcp_adam
from smartcpd.solvers.mm import mm
from smartcpd.solvers.online import online
from smartcpd.solvers.smd import smd

SOLVERS: dict[str, Solver] = {s.name: s for s in (auto, smd, mm, online, gcp_adam)}

__all__ = ["SOLVERS", "Observer", "Report", "Result", "Settings", "Solver", "get", "names"]


def names() -> list[str]:
    return list(SOLVERS)


def get(name: str) -> Solver:
    if name not in SOLVERS:
        raise InvalidParameterError(f"Unknown solver {name!r}. Names: {', '.join(SOLVERS)}.")
    return SOLVERS[name]
