"""Solvers: the loops that fit a problem. One a file."""

from smartcpd._data.tiled import TiledArray
from smartcpd._methods.als import als
from smartcpd._methods.base import Comparison, Ended, Epoch, Observer, Result, Settings, Solver
from smartcpd._methods.gcp_adam import gcp_adam
from smartcpd._methods.ggn import ggn
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.md import md
from smartcpd._methods.mm import mm
from smartcpd._methods.smd import smd
from smartcpd._problem.problem import Problem
from smartcpd._strategies.auto import auto, choice
from smartcpd._strategies.completion import observed
from smartcpd._strategies.dense import core
from smartcpd._strategies.few_events import nonzeros
from smartcpd._strategies.partitioned import parts
from smartcpd._strategies.sequence import Relay
from smartcpd._strategies.simplex import relaxed
from smartcpd._strategies.sparse import online
from smartcpd._strategies.subsampled import large
from smartcpd._strategies.tiled import blocks
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.partitions.tensor import PartitionedTensor, unread

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
    "Epoch",
    "Observer",
    "Relay",
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
    if isinstance(storage, TiledArray) and not solver.reads_parts:
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
        storage.fit_needs(problem.rank).check()


def names() -> list[str]:
    return list(SOLVERS)


def get(name: str | Solver) -> Solver:
    """The solver of a name; one with settings of its own is taken as it is."""
    if isinstance(name, Solver):
        return name
    if name not in SOLVERS:
        raise InvalidParameterError(f"Unknown solver {name!r}. Names: {', '.join(SOLVERS)}.")
    return SOLVERS[name]
