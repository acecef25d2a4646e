"""Quasi-Newton descents over all cells of a tensor: the finish of dense fits, and of sparse ones
under losses without multiplicative updates.
"""

from __future__ import annotations

from smartcpd._common.stacked import stack
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.descents import FINISHED, Descents
from smartcpd._methods.loop import ended_by_residual, is_solution
from smartcpd._methods.newton_sweeps import row_newton, swept
from smartcpd._methods.sparse_descent import SparseDescents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.bounds import check_bounds
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError

CROWDED_FINISHED = 5e-6
"""What a finish may still gain where a model is crowded: solutions of almost the same loss abound
there, and descents are slow."""


ROW_BY_ROW = 1 << 22
"""Number of cells up to which rows can be solved one by one, zeros and all."""


def is_crowded(problem: Problem) -> bool:
    """Whether there are more components than a mode has rows, in each of three modes that modes
    can be joined to: solutions abound then.
    """
    joined = [1] * min(3, len(problem.shape))
    for size in sorted(problem.shape, reverse=True):
        joined[joined.index(min(joined))] *= size
    return problem.rank > min((n for n in joined if n > 1), default=1)


def finished(problem: Problem) -> float:
    """Return the gain that a finish may leave, relative to the resolution of the loss."""
    return CROWDED_FINISHED if is_crowded(problem) else FINISHED


def check_dense(problem: Problem, solver: str) -> None:
    """Refuse what descents on dense data do not serve."""
    check_bounds(problem, solver)
    if problem.storage.absent != "none":
        raise IncompatibleError(
            f"Solver '{solver}' reads dense arrays; got {problem}. Use solver='auto', or pass "
            "X.to_dense() if it fits in memory."
        )


def _run(task: Task) -> Result:
    """Descend from a start; superfluous components are merged first."""
    problem = task.problem
    tracker = Tracker(problem, task.settings.for_full_passes(), task.observe, task.rng)
    kind = Descents if problem.storage.absent == "none" else SparseDescents
    descents = kind(problem, task.settings, tracker, task.rng)
    A = stack(task.start)
    descents.compile(A)
    tracker.begin_with(A[:, : problem.rank])

    def loop() -> Status:
        B = descents.reduced(A) if A.shape[1] > problem.rank else A
        found = descents.run(B, "finish", finished(problem), last=True)
        if found.stuck and not is_solution(tracker, found.A):
            if problem.shared:  # sweeps move one mode at a time
                return ended_by_residual(tracker, found.A, "a quasi-Newton step", "lbfgs")
            return swept(tracker, found.A)
        return found.status

    return tracker.follow(loop)


def finish_of(problem: Problem) -> Method:
    """Return the method that goes on from a start within bounds: all factors at once, or row by row
    where the loss asks for it.
    """
    few = problem.storage.n_cells <= ROW_BY_ROW
    return row_newton if problem.loss.bends_down and few else quasi_newton


quasi_newton = Method(
    "quasi-newton",
    _run,
    lambda problem: check_bounds(problem, "quasi-newton"),
    takes_entry_bounds=True,
    shares_factors=True,
)
