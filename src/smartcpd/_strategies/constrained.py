"""The fit of little data with constraints on whole columns: stochastic steps, then exact ones.

Stochastic steps find a good place soon, and are slow to reach its bottom; over little data it
cannot be told from their progress whether there is something left to gain. Mirror steps along exact
gradients never go uphill, and end where none of them leads down; where penalties are smooth, a
quasi-Newton method gets there sooner.
"""

from __future__ import annotations

from functools import partial

from smartcpd._methods.base import Method, Result
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.md import run
from smartcpd._methods.smd import smd
from smartcpd._problem.bounds import are_smooth
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.sequence import FitSequence
from smartcpd._strategies.starts import make_start

MOST_CELLS = 1 << 17
"""Beyond, an epoch has so many steps that their progress says enough."""
FIRST_EPOCHS = 60
"""The most epochs of stochastic steps, before exact ones take over."""


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
    return sequence.run(_finish_of(problem), problem, rng, result.factors)


def _finish_of(problem: Problem) -> Method:
    return lbfgs if are_smooth(problem) else _accelerated


_accelerated = Method("constrained", partial(run, leaps=True))
constrained = Strategy("constrained", _run, _finish_of)
