"""The starts of a fit as models to be matched."""

from __future__ import annotations

from smartcpd._common.stacked import stack
from smartcpd._fitting.consensus.build import build
from smartcpd._fitting.consensus.result import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.unobserved import without_unobserved_rows
from smartcpd._methods.base import Comparison
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem


def consensus_of(
    problem: Problem, model: CPModel, objective: float, converged: bool, comparison: Comparison
) -> Consensus | None:
    """Return the consensus of a fitted model with other starts; None if no other came to its
    end.
    """
    if not comparison.others:
        return None
    others = []
    for start in comparison.others:
        # Rows without observed cells differ between starts by chance alone.
        factors, _ = without_unobserved_rows(problem, start.factors)
        others.append((CPModel(factors, None, problem.loss, model.modes), start.objective))
    return build(
        model,
        objective,
        others,
        own=comparison.own,
        n_stopped=comparison.n_stopped,
        settled=converged and comparison.settled,
        resolution=CellSample(problem).resolution(stack(model.distribute().factors)),
    )
