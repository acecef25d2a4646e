"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from smartcpd._data.opening import in_memory
from smartcpd._fitting.answers.diagnosis import Diagnosis, Finding, Severity
from smartcpd._fitting.consensus import Consensus
from smartcpd._fitting.model import CPModel
from smartcpd._inference.diagnosis import (
    components,
    convergence,
    distribution,
    dominance,
    observations,
    ranks,
)
from smartcpd._inference.diagnosis.case import Case, shared_evenly
from smartcpd._inference.diagnosis.tallies import Tallies
from smartcpd._inference.rank_check.check import checked_rank
from smartcpd._problem.history import History, Status
from smartcpd._problem.problem import Problem
from smartcpd.errors import InvalidParameterError
from smartcpd.quality.reading import reading_of


class Check(NamedTuple):
    """A question about a fit, and the cases in which it means something."""

    name: str
    find: Callable[[Case], Iterator[Finding]]
    applies: Callable[[Case], bool] = lambda case: True


CHECKS = (
    Check("dead components", components.dead),
    Check("duplicate components", components.duplicate),
    Check("diverging components", components.diverging),
    Check("separation", components.separation, distribution.binary),
    Check("convergence", convergence.not_converged),
    Check("starts", convergence.disagreeing_starts, lambda case: case.consensus is not None),
    Check("over-dispersion", distribution.over_dispersion, distribution.counts),
    Check("zero inflation", distribution.zero_inflation, distribution.counts),
    Check("calibration", distribution.calibration, distribution.binary),
    Check("dominant cells", dominance.dominant_cells),
    Check("observations", observations.few_observations),
    Check("rank", ranks.unsuitable, ranks.compared),
)


def diagnose(model: CPModel, X: Any, absent: str = "zero", **more: Any) -> Diagnosis:
    """Find out what may be wrong with a model of some data; see `smartcpd.CPModel.diagnose`.

    Further parameters are those of `case_of`.
    """
    return examined(case_of(model, X, absent, **more))


def case_of(
    model: CPModel,
    X: Any,
    absent: str = "zero",
    *,
    mask: Any = None,
    weights: Any = None,
    constraint: Any = "auto",
    status: Status | None = None,
    history: History | None = None,
    consensus: Consensus | None = None,
    compare_ranks: bool = False,
) -> Case:
    """Return a model beside its data, ready for the checks.

    Parameters
    ----------
    compare_ranks : bool
        Whether fewer and more components are tried on held-out cells.
    status, history, consensus : optional
        What a fit says about itself: ``status_``, ``history_`` and ``consensus_``.
    """
    model = model.with_exposure()
    if model.loss_function is None:
        raise InvalidParameterError(
            "This model has no loss, so nothing can be said about its fit. Load it with "
            "CPModel.load(path, loss=...)."
        )
    problem = Problem.build(
        X,
        model.rank,
        model.loss_function,
        constraint=constraint,
        absent=absent,
        mask=mask,
        weights=weights,
    )
    if problem.shape != model.shape:
        raise InvalidParameterError(
            f"X has shape {problem.shape}, the model {model.shape}. They must be the same."
        )
    in_memory(problem.storage, "diagnose")
    factors = shared_evenly(model, problem)
    reading = reading_of(problem.storage, factors, problem.loss, seed=0)
    tallies = Tallies(reading)
    reading.show_to(tallies)
    rank = None
    if compare_ranks:
        rank = checked_rank(problem, factors, history[-1].time if history else 0.0)
    return Case(model, problem, factors, tallies, status, history, consensus, rank)


def examined(case: Case) -> Diagnosis:
    """What the checks find that mean something in a case."""
    findings: list[Finding] = []
    checked = []
    with np.errstate(over="ignore", invalid="ignore"):  # a diverged model is a case, too
        for check in CHECKS:
            if check.applies(case):
                checked.append(check.name)
                findings += check.find(case)
    findings.sort(key=lambda finding: finding.severity is not Severity.WARNING)
    sampled = case.tallies.reading.sampled_cells
    return Diagnosis(tuple(findings), tuple(checked), sampled)
