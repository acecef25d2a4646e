"""The fit of dense data too large for many full passes: a part of it, then growing samples of
fibers.

A fit to some rows of every mode is extended to all of them (`subtensor_fit`). From there on the
model is good nearly everywhere, and is improved on random fibers of the whole tensor.
"""

from __future__ import annotations

from smartcpd._common.stacked import stack
from smartcpd._methods.base import Result
from smartcpd._methods.dense_descent import check_dense
from smartcpd._methods.growing_samples import GrowingSamples, growing_samples
from smartcpd._methods.tracker import Tracker
from smartcpd._strategies.base import Search, Strategy
from smartcpd._strategies.starts import random_factors
from smartcpd._strategies.subtensor_fit import SubtensorFit

FULL_PASSES = 1 << 23
"""Cells up to which passes over all of them are cheap, and nothing of this is needed."""


def _run(search: Search) -> Result:
    problem, settings, rng = search.problem, search.settings, search.rng
    tracker = Tracker(problem, settings, search.observe, rng)
    samples = GrowingSamples(problem, settings, tracker, rng)
    descents = samples.descents
    part = SubtensorFit(problem, settings, tracker, descents.region, rng)
    A = descents.inside(stack(random_factors(problem, problem.rank, rng)))
    descents.compile(A)
    tracker.begin_with(A)
    return tracker.follow(lambda: samples.improved(part.extended()))


subsampled = Strategy(
    "subsampled",
    _run,
    lambda problem: growing_samples,
    lambda problem: check_dense(problem, "subsampled"),
    compares_starts=True,
)
