"""Sparse data that is read part by part: fitted on a sample first, then by full passes.

A sample of the entries of a sum of components is a sum of the same components, only smaller. What
fits it in memory is therefore close to what fits all entries, and a few passes over those finish
it: the disk is read as seldom as possible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd._common.memory import budget
from smartcpd._methods.base import Result, Solver, Task
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.mm import check as check_mm
from smartcpd._methods.mm import mm
from smartcpd._problem.bounds import are_bounds
from smartcpd._problem.problem import Problem
from smartcpd._strategies.sequence import Relay
from smartcpd._strategies.sparse import FEW_EVENTS, online, online_start
from smartcpd._strategies.starts import make_start
from smartcpd.errors import IncompatibleError
from smartcpd.partitions.tensor import PartitionedTensor

SHARE_OF_MEMORY = 1 / 3
"""That the sample may take."""
ENOUGH = 1.25 * FEW_EVENTS
"""Entries a component and row of the longest mode: with fewer, starts would differ. But not ..."""
SHARE_OF_ENTRIES = 1 / 4
"""... more than this share of all, unless those are few, ..."""
FEW = 1 << 19
"""... which is less than so many."""
SMOOTHING = 1.0
"""Events that each row gets on top of those in the sample: it may have none there."""


def finish_of(problem: Problem) -> Solver:
    """What goes on from a start by full passes."""
    return mm if problem.loss.pseudo_count_slope is not None and _multiplies(problem) else lbfgs


def _multiplies(problem: Problem) -> bool:
    try:
        check_mm(problem)
    except IncompatibleError:
        return False
    return True


def check(problem: Problem) -> None:
    if not isinstance(problem.storage, PartitionedTensor):
        raise IncompatibleError(
            "Solver 'parts' takes a partitioned tensor that is larger than max_memory; got "
            f"{problem}. Use solver='auto'."
        )
    if not (are_bounds(problem) or finish_of(problem) is mm):
        raise IncompatibleError(
            f"Data in parts is fitted under bounds on single entries, or with columns on the "
            f"simplex under poisson and bernoulli-odds; got {problem}. Raise max_memory, or use "
            "constraint='nonnegative'."
        )


def _run(task: Task) -> Result:
    problem, settings, rng = task.problem, task.settings, task.rng
    assert isinstance(problem.storage, PartitionedTensor)
    relay = Relay(settings, task.observe)
    finish = finish_of(problem)
    if settings.given_start:
        return relay.run(finish, problem, task.start, rng, given_start=True)
    inner = _sampled(problem, rng)
    width = task.start[0].shape[1] / problem.rank
    result = relay.run(
        _solver_for(inner, task),
        inner,
        make_start(inner, "random", width, rng),
        rng,
        given_start=False,
        prefix="sample: ",
        comparable=False,
    )
    if result.status.interrupted:
        return replace(result, factors=_lifted(problem, inner, result.factors))
    start = _lifted(problem, inner, result.factors)
    local = _local_updates(problem)
    if local is not None:
        result = relay.run(local, problem, start, rng, given_start=True)
        if result.ended:
            return result
        start = result.factors
    return relay.run(finish, problem, start, rng, given_start=True)


def _sampled(problem: Problem, rng: np.random.Generator) -> Problem:
    storage = problem.storage
    assert isinstance(storage, PartitionedTensor)
    affordable = (
        SHARE_OF_MEMORY * budget(storage.max_memory) / (storage.bytes_of_fit / storage.n_events)
    )
    enough = ENOUGH * max(storage.shape) * problem.rank
    wanted = max(FEW, min(enough, SHARE_OF_ENTRIES * storage.n_events))
    return replace(problem, storage=storage.sample(int(min(affordable, wanted)), rng))


def _solver_for(inner: Problem, task: Task) -> Solver:
    from smartcpd._strategies.auto import choice  # which knows this solver

    chosen = choice(inner, task.settings)[0]
    return online_start if chosen is online else chosen


def _local_updates(problem: Problem) -> Solver | None:
    """What brings workers of a cluster closer before all passes are made together."""
    storage = problem.storage
    assert isinstance(storage, PartitionedTensor)
    if storage.reads_here:
        return None
    from smartcpd.distributed.rounds import rounds, suits

    return rounds if suits(problem) else None


def _lifted(problem: Problem, inner: Problem, factors: list[np.ndarray]) -> list[np.ndarray]:
    """Factors for all entries from those for a sample."""
    storage, sample = problem.storage, inner.storage
    assert isinstance(storage, PartitionedTensor)
    adds_up = problem.loss.link(2.0) == 2.0 or problem.loss.pseudo_count_slope is not None
    if storage.absent == "unobserved" or not adds_up:
        return factors
    share = sample.n_events / storage.n_events  # type: ignore[attr-defined]
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


parts = Solver("parts", _run, check, reads_parts=True)
