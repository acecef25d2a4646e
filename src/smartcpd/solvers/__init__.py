"""Solvers: the loops that fit a problem. One a file."""

from smartcpd.blocks import Blocks
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.partitions.preflight import preflight
from smartcpd.partitions.tensor import PartitionedTensor, unread
from smartcpd.problem import Problem
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
from smartcpd.solvers.blocks import blocks
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
from smartcpd.solvers.parts import parts
from smartcpd.solvers.relaxed import relaxed
from smartcpd.solvers.relay import Relay
from smartcpd.solvers.smd import smd

_ALL = (
    auto,
    core,
    large,
    blocks,
    relaxed,
    observed,
    nonzeros,
    online,
    parts,
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
    "check",
    "check_parts",
    "choice",
    "get",
    "names",
]


def check(solver: Solver, problem: Problem) -> None:
    """Refuse a problem that a solver cannot serve, or that does not fit in memory."""
    check_parts(solver, problem)
    solver.check(problem)


def check_parts(solver: Solver, problem: Problem) -> None:
    """Refuse data in parts where a solver needs it whole, or where not even a part has room."""
    storage = problem.storage
    if isinstance(storage, Blocks) and not solver.reads_parts:
        able = ", ".join(repr(s.name) for s in _ALL if s.reads_parts)
        raise IncompatibleError(
            f"Solver '{solver.name}' needs X in memory, and {storage.source.title} of shape "
            f"{problem.shape} is larger than max_memory allows. Allow more, or use one of the "
            f"solvers {able}."
        )
    if isinstance(storage, PartitionedTensor):
        if not solver.reads_parts:
            able = ", ".join(repr(s.name) for s in _ALL if s.reads_parts)
            raise unread(storage, f"solver '{solver.name}' does not do that (those of {able} do)")
        preflight(storage, problem.rank).check(storage, problem.rank)


def names() -> list[str]:
    return list(SOLVERS)


def get(name: str | Solver) -> Solver:
    """The solver of a name; one with settings of its own is taken as it is."""
    if isinstance(name, Solver):
        return name
    if name not in SOLVERS:
        raise InvalidParameterError(f"Unknown solver {name!r}. Names: {', '.join(SOLVERS)}.")
    return SOLVERS[name]
