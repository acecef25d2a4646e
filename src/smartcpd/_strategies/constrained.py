"""The fit of little data with constraints on whole columns: stochastic steps, then exact ones.

Stochastic steps find a good place soon, and are slow to reach its bottom; over little data it
cannot be told from their progress whether there is something left to gain. Mirror steps along exact
gradients never go uphill, and end where none of them leads down; where penalties are smooth, a
quasi-Newton method gets there sooner.
"""

from __future__ import annotations

import math
from functools import partial

from smartcpd._common.stacked import stack
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.md import run
from smartcpd._methods.smd import smd
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.bounds import are_smooth
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.sequence import FitSequence
from smartcpd._strategies.starts import make_start

MOST_CELLS = 1 << 17
"""Beyond, an epoch has so many steps that their progress says enough."""
FIRST_EPOCHS = 60
"""The most epochs of stochastic steps, before exact ones take over."""
MOST_RUNS = 6
"""How often exact steps begin anew, at most."""


def suits(problem: Problem) -> bool:
    """Whether exact gradients cost next to nothing."""
    return problem.storage.n_cells <= MOST_CELLS


def _run(search: Search) -> Result:
    problem, settings, rng = search.problem, search.settings, search.rng
    sequence = FitSequence(settings, search.observe)
    start = make_start(problem, "random", settings.overcomplete, rng)
    result = sequence.run(smd, problem, rng, start, most_epochs=FIRST_EPOCHS)
    if result.status.interrupted or settings.stopping.limit(result.history) is not None:
        return result
    return sequence.run(_method, problem, rng, result.factors)


def _finish(task: Task) -> Result:
    """Go on until a run that begins anew gains next to nothing: one that was slow looks as if it
    was done."""
    problem, settings = task.problem, task.settings
    sequence = FitSequence(settings, task.observe)
    method = lbfgs if are_smooth(problem) else _accelerated
    sample = CellSample(problem)
    start, before = task.start, math.inf
    for _ in range(MOST_RUNS):
        result = sequence.run(method, problem, task.rng, start)
        if result.ended or not result.status.converged:
            break
        start, after = result.factors, result.history[-1].objective
        if before - after <= settings.stopping.tol * sample.resolution(stack(start)):
            break
        before = after
    return result


_accelerated = Method("exact-steps", partial(run, leaps=True))
_method = Method("constrained", _finish)
constrained = Strategy("constrained", _run, lambda problem: _method)
