"""A population of mixtures that is bred on the nonzeros of a sparse tensor, or on a sample of them.

Counts cost next to nothing, so components are sought as those of counts, whatever the loss: many
wide mixtures are merged to the rank, then pairs of mixtures side by side are merged, which can keep
the best components of both. What is as low as a mixture that is there already takes its place, so
that mixtures stay different.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from smartcpd import losses
from smartcpd._common.stacked import stack
from smartcpd._data.storage import SparseTensor
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_descents import SMOOTHING, narrowed
from smartcpd._methods.mm import Passes
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.problem import Problem
from smartcpd._strategies.starts import marginal_factors

WIDTH = 1.5
"""Number of components of a start, relative to the rank."""
FIRST_PASSES, BRED_PASSES, LAST_PASSES = 15, 4, 6
"""Number of passes of a wide mixture before it is merged, at first and when bred, and after."""
WORK, MOST = 2e5, 12
"""A population has as many members as make a pass over all of them so many entries, up to these."""
CHILDREN, PATIENCE = 2, 1
"""Number of children for each member; and number of children for each member that may come without
a lower loss before breeding ends."""
TWINS = 1e-3
"""Losses that differ by less than this share of their resolution belong to the same mixture."""
LEAST_SAMPLE, EVENTS_A_PARAMETER = 1 << 16, 3
"""The least number of nonzeros of a sample, and of nonzeros for each parameter."""

Member = tuple[float, Mixture]
"""A mixture, and its loss when it was seen last."""


def sampled(problem: Problem, rng: np.random.Generator) -> tuple[Problem, float]:
    """The problem on some of its nonzeros where those are many, and how large a share they are."""
    storage = problem.stored_as(SparseTensor)
    count = max(LEAST_SAMPLE, EVENTS_A_PARAMETER * problem.freedom)
    if storage.weighted or 2 * count > storage.nnz:
        return problem, 1.0
    chosen = np.sort(rng.permutation(storage.nnz)[:count])
    columns = np.stack([column[chosen] for column in storage.indices], axis=1)
    some = SparseTensor(columns, storage.values[chosen], storage.shape)
    share = float(some.values.sum(dtype=np.float64) / storage.values.sum(dtype=np.float64))
    return replace(problem, storage=some), share


@dataclass
class Population:
    """Mixtures of the right rank, each with its loss as counts."""

    problem: Problem
    tracker: Tracker
    rng: np.random.Generator
    n_threads: int

    def __post_init__(self) -> None:
        self.passes = Passes.over(self.problem, self.n_threads, losses.get("poisson"))
        self.nnz = self.problem.storage.n_stored
        self.size = int(np.clip(round(WORK / max(self.nnz, 1)), 1, MOST))
        resolution = self.problem.freedom / self.problem.storage.n_observed
        self.twins = TWINS * resolution

    def bred(self) -> list[Mixture]:
        """Make a population and breed it; return its members, the best first."""
        members = sorted((self._start() for _ in range(self.size)), key=itemgetter(0))
        patience = PATIENCE * self.size
        for _ in range(CHILDREN * self.size if self.size > 1 else 0):
            lowest = members[0][0]
            one, two = self.rng.choice(self.size, 2, replace=False)
            both = members[one][1].beside(members[two][1])
            self._admit(members, self._merged(both, BRED_PASSES))
            patience = PATIENCE * self.size if members[0][0] < lowest - self.twins else patience - 1
            if patience <= 0:
                break
        return [mixture for _, mixture in members]

    def _admit(self, members: list[Member], child: Member) -> None:
        """Put a child in the place of its twin or of the worst, if it is better."""
        twin = next(
            (k for k, other in enumerate(members) if abs(other[0] - child[0]) < self.twins),
            len(members) - 1,
        )
        if child[0] < members[twin][0]:
            members[twin] = child
            members.sort(key=itemgetter(0))

    def _start(self) -> Member:
        width = math.ceil(WIDTH * self.problem.rank)
        counts = replace(self.problem, loss=losses.get("poisson"))
        factors = marginal_factors(counts, width, self.rng)
        return self._merged(Mixture.of(stack(factors), self.problem.shape), FIRST_PASSES)

    def _merged(self, mixture: Mixture, passes: int) -> Member:
        """A wide mixture after some passes, a merge and some more passes."""
        for _ in range(passes):
            mixture = self._step(mixture, SMOOTHING)
        mixture = narrowed(mixture, self.problem.rank, self._step)
        loss = math.inf
        for _ in range(LAST_PASSES):
            before = mixture
            self._count_pass()
            loss, mixture = self.passes.step(before)
        self.tracker.epoch += 1
        return loss, mixture

    def _step(self, mixture: Mixture, smoothing: float) -> Mixture:
        self._count_pass()
        return self.passes.step(mixture, smoothing=smoothing)[1]

    def _count_pass(self) -> None:
        self.tracker.entries += self.nnz
        self.tracker.check_time()
