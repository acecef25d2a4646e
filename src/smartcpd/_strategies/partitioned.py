"""The fit of sparse data that is read part by part: on a sample first, then by full passes.

A sample of the entries of a sum of components is a sum of the same components, only smaller. What
fits it in memory is therefore close to what fits all entries, and a few passes over those finish
it: the disk is read as seldom as possible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._common.memory import budget
from smartcpd._data.storage import SparseTensor
from smartcpd._methods.base import Method, Result, Settings
from smartcpd._methods.expected_counts import serves
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.mm import check as check_mm
from smartcpd._methods.mm import mm
from smartcpd._problem.bounds import are_bounds
from smartcpd._problem.problem import Problem
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.in_memory import choice_in_memory
from smartcpd._strategies.sequence import FitSequence
from smartcpd._strategies.sparse import FEW_EVENTS, sparse, sparse_start
from smartcpd._strategies.starts import make_start
from smartcpd.errors import IncompatibleError
from smartcpd.partitions.tensor import PartitionedTensor

SHARE_OF_MEMORY = 1 / 3
"""The share of the memory that the sample may take."""
ENOUGH = 1.25 * FEW_EVENTS
"""Number of entries a component and row of the longest mode that a sample should have: with fewer,
starts would differ.
"""
SHARE_OF_ENTRIES = 1 / 4
"""The largest share of all entries that a sample takes, unless that is less than `FEW`."""
FEW = 1 << 19
"""The least number of entries of a sample, if there are as many."""
SMOOTHING = 1.0
"""Number of events that each row gets on top of those in the sample, where it may have none."""


def finish_of(problem: Problem) -> Method:
    """Return the method that goes on from a start by full passes."""
    return mm if problem.loss.pseudo_count_slope is not None and _multiplies(problem) else lbfgs


def _multiplies(problem: Problem) -> bool:
    try:
        check_mm(problem)
    except IncompatibleError:
        return False
    return True


def check(problem: Problem) -> None:
    """Refuse what is not read part by part, or under constraints that passes do not serve."""
    if not isinstance(problem.storage, PartitionedTensor):
        raise IncompatibleError(
            "Solver 'partitioned' takes a partitioned tensor that is larger than max_memory; got "
            f"{problem}. Use solver='auto'."
        )
    if not (are_bounds(problem) or finish_of(problem) is mm):
        raise IncompatibleError(
            f"Data in parts is fitted under bounds on single entries, or with columns on the "
            f"simplex under poisson and bernoulli-odds; got {problem}. Raise max_memory, or use "
            "constraint='nonnegative'."
        )


def _run(search: Search) -> Result:
    problem, settings, rng = search.problem, search.settings, search.rng
    sequence = FitSequence(settings, search.observe)
    inner = _sampled(problem, rng)
    solver = _solver_for(inner, settings)
    start = None
    if isinstance(solver, Method):
        start = make_start(inner, "random", settings.overcomplete, rng)
    result = sequence.run(solver, inner, rng, start, prefix="sample: ", comparable=False)
    start = _lifted(problem, inner, result.factors)
    if result.status.interrupted:
        return replace(result, factors=start)
    local = problem.stored_as(PartitionedTensor).local_method(problem)
    if local is not None:
        result = sequence.run(local, problem, rng, start)
        if result.ended:
            return result
        start = result.factors
    return sequence.run(finish_of(problem), problem, rng, start)


def _sampled(problem: Problem, rng: np.random.Generator) -> Problem:
    storage = problem.stored_as(PartitionedTensor)
    affordable = (
        SHARE_OF_MEMORY * budget(storage.max_memory) / (storage.bytes_of_fit / storage.n_events)
    )
    enough = ENOUGH * max(storage.shape) * problem.rank
    wanted = max(FEW, min(enough, SHARE_OF_ENTRIES * storage.n_events))
    return replace(problem, storage=storage.sample(int(min(affordable, wanted)), rng))


def _solver_for(inner: Problem, settings: Settings) -> Strategy | Method:
    chosen = choice_in_memory(inner, settings)[0]
    return sparse_start if chosen is sparse and serves(inner) else chosen


def _lifted(problem: Problem, inner: Problem, factors: list[np.ndarray]) -> list[np.ndarray]:
    """Return factors for all entries from those for a sample."""
    storage, sample = problem.stored_as(PartitionedTensor), inner.stored_as(SparseTensor)
    adds_up = problem.loss.link(2.0) == 2.0 or problem.loss.pseudo_count_slope is not None
    if storage.absent == "unobserved" or not adds_up:
        return factors
    share = sample.n_events / storage.n_events
    sizes = np.prod([A.sum(axis=0) for A in factors], axis=0)
    cones = [c.cone for c in problem.constraints]
    lifted = []
    for A, sums, constraint in zip(factors, storage.marginals(), problem.constraints, strict=True):
        if not constraint.signed and sums.sum() > 0 and sizes.sum() > 0:
            # So many events a row, spread over components as all events are.
            extra = np.minimum(SMOOTHING, share * np.maximum(sums, 0.0)) / (share * sums.sum())
            A = A + np.outer(extra, A.sum(axis=0))
        if constraint.cone:
            A = A * share ** (-1 / sum(cones))
        lifted.append(A)
    maps = problem.phases[0].mirrors
    return [
        c.apply(A, mirror=phi) for A, c, phi in zip(lifted, problem.constraints, maps, strict=True)
    ]


partitioned = Strategy("partitioned", _run, finish_of, check, reads_parts=True)
