"""Solvers: the loops that fit a problem. One a file."""

from smartcpd.errors import InvalidParameterError
from smartcpd.solvers.als import als
from smartcpd.solvers.auto import auto
from smartcpd.solvers.base import Observer, Report, Result, Settings, Solver
from smartcpd.solvers.core import core
from smartcpd.solvers.ggn import ggn
from smartcpd.solvers.lbfgs import lbfgs
from smartcpd.solvers.md import md
from smartcpd.solvers.mm import mm
from smartcpd.solvers.online import online
from smartcpd.solvers.smd import smd

SOLVERS: dict[str, Solver] = {s.name: s for s in (auto, core, online, smd, mm, md, als, lbfgs, ggn)}

__all__ = ["SOLVERS", "Observer", "Report", "Result", "Settings", "Solver", "get", "names"]


def names() -> list[str]:
    return list(SOLVERS)


def get(name: str) -> Solver:
    if name not in SOLVERS:
        raise InvalidParameterError(f"Unknown solver {name!r}. Names: {', '.join(SOLVERS)}.")
    return SOLVERS[name]
