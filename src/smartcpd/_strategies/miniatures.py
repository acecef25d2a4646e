"""Small versions of a sparse tensor, on which a search costs next to nothing.

A *sample* has some of the nonzeros. A *condensed* one also has fewer rows: neighbours are put
together until each group has about as many events, so that frequent rows stay by themselves. Counts
of rows that are put together add up, and so do the rows of their model: what is found there is a
solution seen from further away. There are more events for each parameter, and poor solutions
stand out. Where to cut is drawn anew for every miniature: two of them share nothing but the data.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._data.storage import SparseTensor
from smartcpd._methods.mixture import Mixture
from smartcpd._problem.problem import Problem

LEAST_SAMPLE, EVENTS_A_PARAMETER = 1 << 15, 2
"""The least number of nonzeros of a sample, and of nonzeros for each parameter."""
CONDENSED_EVENTS_A_PARAMETER = 6
"""Number of nonzeros for each parameter where rows are put together."""
ROWS_A_COMPONENT = 2
"""Each mode keeps so many rows for a component, or all of its own."""
RARE = 1e-3
"""What a row without events counts for, as a share of the mean row."""


@dataclass(frozen=True)
class Miniature:
    """A problem on a small version of its tensor."""

    problem: Problem
    shape: tuple[int, ...]
    """That of the whole tensor."""
    share: float = 1.0
    """How much of all events it has."""
    groups: tuple[np.ndarray, ...] = ()
    """For each mode, the number of the group that a row belongs to; empty where rows stay as they
    are."""
    of_group: tuple[np.ndarray, ...] = ()
    """For each mode, what share of its group's events a row has."""

    @classmethod
    def sampled(cls, problem: Problem, rng: np.random.Generator) -> Miniature:
        """Some of the nonzeros where those are many; all of them elsewhere."""
        storage, count = problem.stored_as(SparseTensor), _sample_size(problem)
        if count >= storage.nnz:
            return cls(problem, problem.shape)
        columns, values = _some(storage, count, rng)
        return cls._with(problem, columns, values, storage.shape)

    @classmethod
    def condensed(cls, problem: Problem, rng: np.random.Generator) -> Miniature:
        """Some of the nonzeros, with neighbouring rows put together; a sample where rows are few,
        or where the loss does not add up over cells.
        """
        storage = problem.stored_as(SparseTensor)
        limit = _longest_mode(storage.shape, problem.rank)
        few = _sample_size(problem) >= storage.nnz or limit >= max(storage.shape)
        if few or not problem.loss.events_are_logs:
            return cls.sampled(problem, rng)
        columns, values = _some(storage, LEAST_SAMPLE, rng)
        sums = [np.maximum(each, RARE * each.mean()) for each in storage.marginals()]
        groups = tuple(_grouped(each, limit, rng) for each in sums)
        of_group = tuple(
            each / np.bincount(group, weights=each)[group]
            for each, group in zip(sums, groups, strict=True)
        )
        columns = [group[column] for group, column in zip(groups, columns, strict=True)]
        shape = tuple(int(group[-1]) + 1 for group in groups)
        # Yes and yes would be yes; here it is two events.
        made = cls._with(problem, columns, values.astype(np.float64), shape)
        return replace(made, groups=groups, of_group=of_group)

    @classmethod
    def _with(
        cls,
        problem: Problem,
        columns: list[np.ndarray],
        values: np.ndarray,
        shape: tuple[int, ...],
    ) -> Miniature:
        """A miniature of some events."""
        whole = problem.stored_as(SparseTensor).values.sum(dtype=np.float64)
        storage = SparseTensor(np.stack(columns, axis=1), values, shape)
        share = float(values.sum(dtype=np.float64) / whole)
        return cls(replace(problem, storage=storage), problem.shape, share)

    @property
    def is_whole(self) -> bool:
        """Whether it is the tensor itself."""
        return self.share == 1.0 and not self.groups

    def enlarged(self, mixture: Mixture) -> Mixture:
        """A mixture of the whole tensor: a row has its share of what its group has."""
        weights = mixture.weights / self.share
        if not self.groups:
            return Mixture(mixture.columns, weights, self.shape)
        columns = [
            part[group] * share[:, None]
            for part, group, share in zip(
                parts(mixture.columns, mixture.shape), self.groups, self.of_group, strict=True
            )
        ]
        return Mixture(np.concatenate(columns), weights, self.shape)

    def reduced(self, mixture: Mixture) -> Mixture:
        """A mixture of the whole tensor as it is seen here."""
        weights = mixture.weights * self.share
        if not self.groups:
            return Mixture(mixture.columns, weights, self.shape)
        columns = [
            np.add.reduceat(part, np.flatnonzero(np.diff(group, prepend=-1)), axis=0)
            for part, group in zip(parts(mixture.columns, self.shape), self.groups, strict=True)
        ]
        return Mixture(np.concatenate(columns), weights, self.problem.shape)


def _sample_size(problem: Problem) -> int:
    """The number of nonzeros of a sample: all of them where it would be more than half."""
    storage = problem.stored_as(SparseTensor)
    count = max(LEAST_SAMPLE, EVENTS_A_PARAMETER * problem.freedom)
    return storage.nnz if storage.weighted or 2 * count > storage.nnz else count


def _some(
    storage: SparseTensor, count: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """The indices and values of some nonzeros, drawn at random."""
    chosen = np.sort(rng.permutation(storage.nnz)[:count])
    return [column[chosen] for column in storage.indices], storage.values[chosen]


def _longest_mode(shape: tuple[int, ...], rank: int) -> int:
    """The number of rows that each mode may have."""
    most = LEAST_SAMPLE // (CONDENSED_EVENTS_A_PARAMETER * rank)
    found = bisect_right(
        range(1, max(shape) + 1), most, key=lambda limit: sum(min(n, limit) for n in shape)
    )
    return max(found, ROWS_A_COMPONENT * rank)


def _grouped(sums: np.ndarray, limit: int, rng: np.random.Generator) -> np.ndarray:
    """For each row the number of its group: about ``limit`` groups of neighbours with as many
    events each, cut at random places.
    """
    if sums.size <= limit:
        return np.arange(sums.size)
    middle = (np.cumsum(sums) - 0.5 * sums) / sums.sum()
    places = np.floor(limit * middle + rng.random())
    return np.concatenate([[0], np.cumsum(np.diff(places) > 0)])
