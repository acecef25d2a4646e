"""A population of mixtures that is bred on the nonzeros of a sparse tensor, or on a sample of them.

Counts cost next to nothing, so components are sought as those of counts, whatever the loss: wide
mixtures are merged to the rank, then pairs of mixtures side by side are merged, which can keep the
best components of both. What is as low as a mixture that is there already takes its place, so that
mixtures stay different. Breeding ends when the best mixture has been found again, or when children
no longer improve on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from smartcpd import losses
from smartcpd._common.stacked import offsets, stack
from smartcpd._common.threads import share
from smartcpd._data.storage import SparseTensor
from smartcpd._kernels.lanes import padded
from smartcpd._kernels.mixture_passes import compiled_mixture_passes
from smartcpd._methods.merging import merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_descents import SMOOTHING
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.problem import Problem
from smartcpd._strategies.starts import marginal_factors

WIDTH = 1.5
"""Number of components of a start, relative to the rank."""
WIDE_PASSES, BRED_PASSES = 15, 4
"""Number of passes of a wide mixture before it is merged, at first and when bred."""
COOLING_PASSES, COOLED = 4, 1.0
"""Number of passes after a merge, and how much they are smoothed."""
WORK, LEAST = 3e5, 2
"""A population has as many members as make a pass over all of them so many entries, but no fewer
than these."""
CHILDREN_WORK = 8e5
"""The same for all children."""
BATCH = 4
"""Number of mixtures that are made side by side, whatever the number of threads."""
PATIENCE = 1
"""Number of children for each member that may come without a lower loss before breeding ends."""
TWINS, FOUND_AGAIN = 1e-3, 0.02
"""Losses that differ by less than these shares of their resolution belong to the same mixture: that
of another member, and of what another start has found."""
LEAST_SAMPLE, EVENTS_A_PARAMETER = 1 << 15, 2
"""The least number of nonzeros of a sample, and of nonzeros for each parameter."""


class Care(NamedTuple):
    """How far a population is bred."""

    most: int
    """The largest number of members."""
    children: int
    """The largest number of children for each."""
    last_passes: int
    """Number of passes that a member makes at the end."""


THOROUGH, ROUGH = Care(32, 8, 15), Care(12, 2, 6)
"""For data whose loss is the one of counts; and for other data, where the best mixtures of counts
are only a place to begin, and different ones are worth more than better ones."""

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
        self.care = THOROUGH if self.problem.loss.divergence == 1.0 else ROUGH
        storage = self.problem.stored_as(SparseTensor)
        starts = offsets(storage.shape)
        columns = [column + first for column, first in zip(storage.indices, starts, strict=False)]
        self.rows = np.stack(columns, axis=1).astype(np.uint32)
        self.x = storage.values.astype(np.float64)
        # Missing cells are taken for empty here: what is bred is a start, and passes over all data
        # follow that know better.
        if storage.weights is not None:
            self.x *= storage.weights / storage.heaviest
        self.passes = compiled_mixture_passes(len(storage.shape))
        self.nnz = storage.n_stored
        entries = max(self.nnz, sum(storage.shape))
        self.size = min(max(round(WORK / entries), LEAST), self.care.most)
        self.n_children = min(round(CHILDREN_WORK / entries), self.care.children * self.size)
        self.resolution = 0.5 * self.problem.freedom
        self.counts = replace(self.problem, loss=losses.get("poisson"))

    def bred(self) -> list[Mixture]:
        """Make a population and breed it; return its members, the best first."""
        members = self._side_by_side(LEAST, self._new_start)
        if abs(members[0][0] - members[1][0]) > FOUND_AGAIN * self.resolution:
            while len(members) < self.size and not self._is_over:
                count = min(BATCH, self.size - len(members))
                members += self._side_by_side(count, self._new_start)
            self._breed(members)
        return [mixture for _, mixture in sorted(members, key=itemgetter(0))]

    def _breed(self, members: list[Member]) -> None:
        """Put children in the places of worse members while that gains something."""
        members.sort(key=itemgetter(0))
        patience = PATIENCE * self.size
        for _ in range(0, self.n_children, BATCH):
            if self._is_over or patience <= 0:
                break
            lowest = members[0][0]
            for child in self._side_by_side(BATCH, partial(self._new_child, members)):
                self._admit(members, child)
            gained = members[0][0] < lowest - TWINS * self.resolution
            patience = PATIENCE * self.size if gained else patience - BATCH

    @property
    def _is_over(self) -> bool:
        """Whether half of the epochs are spent that the user allows, a member being one: the other
        half is for descents from the best of them."""
        return self.tracker.epoch >= self.tracker.settings.stopping.max_epochs / 2

    def _admit(self, members: list[Member], child: Member) -> None:
        """Put a child in the place of its twin or of the worst, if it is better."""
        margin = TWINS * self.resolution
        twin = next(
            (k for k, other in enumerate(members) if abs(other[0] - child[0]) < margin),
            len(members) - 1,
        )
        if child[0] < members[twin][0]:
            members[twin] = child
            members.sort(key=itemgetter(0))

    def _side_by_side(self, count: int, new: Callable[[], Callable[[], Member]]) -> list[Member]:
        """Make some mixtures at the same time; what is random is drawn before, in order."""
        self.tracker.check_time()
        wanted = [new() for _ in range(count)]
        made: dict[int, Member] = {}

        def work(first: int, end: int) -> None:
            made.update({k: wanted[k]() for k in range(first, end)})

        share(work, count, self.n_threads)
        a_member = BRED_PASSES + COOLING_PASSES + self.care.last_passes
        self.tracker.entries += count * a_member * self.nnz
        self.tracker.epoch += count
        return [made[k] for k in range(count)]

    def _new_start(self) -> Callable[[], Member]:
        factors = marginal_factors(self.counts, math.ceil(WIDTH * self.problem.rank), self.rng)
        wide = Mixture.of(stack(factors), self.problem.shape)
        return partial(self._merged, wide, WIDE_PASSES)

    def _new_child(self, members: list[Member]) -> Callable[[], Member]:
        one, two = self.rng.choice(len(members), 2, replace=False)
        return partial(self._merged, members[one][1].beside(members[two][1]), BRED_PASSES)

    def _merged(self, mixture: Mixture, passes: int) -> Member:
        """A wide mixture after some passes, a merge and some more passes."""
        _, mixture = self._improved(mixture, passes, SMOOTHING)
        mixture = merged_by_information(mixture, self.problem.rank)
        _, mixture = self._improved(mixture, COOLING_PASSES, COOLED)
        return self._improved(mixture, self.care.last_passes, 0.0)

    def _improved(self, mixture: Mixture, n_passes: int, smoothing: float) -> Member:
        columns = padded(mixture.columns)
        weights = np.zeros(columns.shape[1])
        weights[: mixture.rank] = mixture.weights
        starts = offsets(self.problem.shape)
        loss = self.passes(self.rows, self.x, starts, n_passes, smoothing, columns, weights)
        found = np.ascontiguousarray(columns[:, : mixture.rank])
        return loss, Mixture(found, weights[: mixture.rank].copy(), mixture.shape)
