"""A population of mixtures that is bred on the nonzeros of a sparse tensor, or on a sample of them.

A start is a wide mixture whose components are merged one by one, with passes in between. A child
is made of two mixtures: it has the components that they share, and some of the others of both,
drawn at random. A child that has the components of a member takes its place if it is lower, so that
mixtures stay different.

Counts cost least, and their loss leads near the solutions of others: where empty cells have a loss
of their own, as yes/no data has, mixtures are bred as counts first, and then under that loss. Where
odds are so large that counts mislead, all starts under the loss itself lead further.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from smartcpd import losses
from smartcpd._common.factors import best_pairs
from smartcpd._common.stacked import stack
from smartcpd._common.threads import share
from smartcpd._data.storage import SparseTensor
from smartcpd._methods.merging import merged_by_information
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mixture_bursts import Bursts, is_curved, serves
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd._problem.problem import Problem
from smartcpd._strategies.starts import marginal_factors
from smartcpd.losses import Loss

WIDTH = 1.5
"""Number of components of a start, relative to the rank."""
TWINS = 0.8
"""The product of cosines from which on two components of different mixtures are the same."""
FOUND_AGAIN = 0.02
"""The first two starts may have found the same if their losses differ by less than this share of
their resolution."""
LEAST, MOST = 2, 16
"""The smallest and the largest number of members."""
WORK = 3e5
"""A population has as many members as make a pass over all of them so many entries."""
CHILDREN_WORK, SAMPLE_CHILDREN_WORK, OWN_CHILDREN_WORK = 1.3e7, 6.5e6, 4e6
"""A population has no more children, at the usual effort, than make a pass over all of those so
many entries: on all nonzeros, on a sample, which compares members only roughly, and under a loss
of their own, whose steps cost several times as much."""
HOPELESS = 0.05
"""A child under a loss of its own whose first steps leave it further above the worst member than
this share of the resolution makes no more of them."""
BATCH = 4
"""Number of mixtures that are made side by side, whatever the number of threads."""
LEFT = 3e-3
"""The share of the resolution that the last steps of a mixture under a loss of its own may
gain."""


class Schedule(NamedTuple):
    """How many passes a start makes."""

    first: int
    """Passes before the first merge."""
    between: int
    """Passes after each merge."""
    last: int
    """Passes at the end."""


class Growth(NamedTuple):
    """How many steps a child makes."""

    lifted: int
    """Passes that come first, lifted so that entries that are 0 in a parent can grow."""
    tried: int
    """Quasi-Newton steps that follow under a loss of its own, before it is given up or goes on."""
    last: int
    """Passes of a child that may take a place; under a loss of its own, quasi-Newton steps."""


class Breeding(NamedTuple):
    """How many children there are."""

    children: int
    """The largest number of children for each member."""
    patience: int
    """How many of them may come in a row without a lower loss before breeding ends."""
    gain: float
    """The share of the resolution by which a loss must be lower to count as such."""


START = Schedule(15, 6, 10)
SAMPLED_START = Schedule(15, 2, 10)
SMOOTHING = 3.0
"""Number of events that smooth a start until its components are merged; less, and starts agree on
poor merges."""
MERGED_LIFT, CHILD_LIFT, OWN_LIFT = 0.01, 0.1, 0.003
"""The mass that lifts the entries of a start whose components were merged, of a child, and of one
under a loss of its own, which makes few passes; see `Bursts.improved`."""
GROWTH, GROWTH_AS_COUNTS, OWN_GROWTH = Growth(12, 0, 25), Growth(6, 0, 15), Growth(4, 8, 40)
"""The steps of children that are counts, that come under a loss of their own later on, and under
the latter."""
AS_COUNTS = Breeding(6, 2, 1e-3)
"""How counts are bred that come under a loss of their own later on."""
FIRST, FIRST_SAMPLE = Breeding(4, 3, 1e-3), Breeding(4, 1, 1e-2)
"""How a population is bred that knows nothing of others, far enough to see whether two of them find
the same: on all nonzeros, and on a sample, which does not tell small differences apart."""
JOINED, JOINED_SAMPLE = Breeding(60, 16, 1e-3), Breeding(60, 8, 1e-3)
"""How the members of all populations are bred when they are put together."""
OWN_FIRST, OWN_JOINED = Breeding(4, 3, 1e-3), Breeding(24, 6, 1e-3)
"""The same for both where the loss is their own and children cost several times as much."""
MOST_JOINED = 32
"""The largest number of members that are put together."""
FIRST_OWN_PASSES, OWN_MEMBERS = 5, 8
"""Number of passes before quasi-Newton steps when counts come under a loss of their own, and of
members that do after they were bred as counts."""


@kept_value
class Member(NamedTuple):
    """A mixture, and its loss when it was seen last: the sum over all cells."""

    loss: float
    mixture: Mixture


@dataclass
class Population:
    """Mixtures of the right rank."""

    problem: Problem
    tracker: Tracker
    rng: np.random.Generator
    n_threads: int
    whole: bool = True
    """Whether the problem has all of its nonzeros."""
    effort: float = 1.0
    """How many children a population may have, relative to the usual number. With 0 it has none,
    and its best start is taken."""

    def __post_init__(self) -> None:
        storage, loss = self.problem.stored_as(SparseTensor), self.problem.loss
        counts = losses.get("poisson")
        own = self.knows(loss, self.whole)
        self.own = Bursts.over(storage, loss) if own and is_curved(loss) else None
        self.counts = Bursts.over(storage, loss if own and not is_curved(loss) else counts)
        self.as_counts = replace(self.problem, loss=counts)
        self.nnz = storage.n_stored
        entries = max(self.nnz, sum(storage.shape))
        self.size = min(max(round(WORK / entries), LEAST), MOST)
        work = CHILDREN_WORK if self.whole else SAMPLE_CHILDREN_WORK
        if self.own is not None:
            work = OWN_CHILDREN_WORK
        self.most_children = int(self.effort * work / entries)
        self.resolution = 0.5 * self.problem.freedom
        self.start = START if self.whole else SAMPLED_START
        self.first = FIRST if self.whole else FIRST_SAMPLE
        self.joining = JOINED if self.whole else JOINED_SAMPLE
        self.growth = GROWTH if self.own is None else GROWTH_AS_COUNTS

    @staticmethod
    def knows(loss: Loss, whole: bool) -> bool:
        """Whether mixtures are bred under a loss, and not as counts alone. A sample of events tells
        nothing about large odds."""
        return serves(loss) and (whole or not is_curved(loss))

    def bred(self, as_counts: bool = True) -> list[Member]:
        """Make a population and breed it; return its members, the best first.

        Under a loss of its own, mixtures are first bred ``as_counts``, and the best of them go on;
        or all of them do as they are.
        """
        members = self._side_by_side([self._new_start() for _ in range(LEAST)])
        if not self.agree_at_once(members):
            while len(members) < self.size and not self._is_over:
                count = min(BATCH, self.size - len(members))
                members += self._side_by_side([self._new_start() for _ in range(count)])
            if self.own is None:
                members = self._breed(members, self.first, self._grown_as_counts)
            elif as_counts:
                members = self._breed(members, AS_COUNTS, self._grown_as_counts)[:OWN_MEMBERS]
        members.sort(key=attrgetter("loss"))
        if self.own is None:
            return members
        made = [partial(self._under_own_loss, each.mixture) for each in members]
        own = [each for each in self._side_by_side(made) if math.isfinite(each.loss)]
        # With too many large cells a model goes on from where its counts are.
        return self._breed(own, OWN_FIRST, self._grown) if own else members

    def agree_at_once(self, members: Sequence[Member]) -> bool:
        """Whether these are the first two starts alone, and have found the same."""
        if len(members) != LEAST:
            return False
        one, two = members
        close = abs(one.loss - two.loss) <= FOUND_AGAIN * self.resolution
        return close and are_twins(one.mixture, two.mixture)

    def joined(self, members: Sequence[Member]) -> list[Member]:
        """Breed the members of several populations as one, for as long as that gains something;
        return the best of them first.

        Members that were bred on samples of their own first make some passes over this one.
        """
        if not self.whole:
            again = [partial(self._grown_as_counts, each.mixture, math.inf) for each in members]
            members = self._side_by_side(again)
        best = sorted(members, key=attrgetter("loss"))[:MOST_JOINED]
        usual = OWN_JOINED if self.own is not None else self.joining
        breeding = Breeding(
            math.ceil(self.effort * usual.children),
            math.ceil(self.effort * usual.patience),
            usual.gain,
        )
        grown = self._grown_as_counts if self.own is None else self._grown
        return self._breed(best, breeding, grown)

    def _breed(
        self,
        members: list[Member],
        breeding: Breeding,
        grown: Callable[[Mixture, float], Member],
    ) -> list[Member]:
        """Put children in the places of worse members while that gains something."""
        members = sorted(members, key=attrgetter("loss"))
        most_in_vain = patience = breeding.patience * len(members)
        most = min(breeding.children * len(members), self.most_children)
        for _ in range(0, most, BATCH):
            bar = members[-1].loss
            wanted = [partial(grown, child, bar) for child in self._new_children(members)]
            if self._is_over or patience <= 0 or not wanted:
                break
            lowest = members[0].loss
            for born in self._side_by_side(wanted):
                self._admit(members, born)
            gained = members[0].loss < lowest - breeding.gain * self.resolution
            patience = most_in_vain if gained else patience - BATCH
        return members

    def _new_children(self, members: list[Member]) -> list[Mixture]:
        """Some children, before their first step, of pairs of members that differ."""
        children = []
        for _ in range(BATCH if len(members) > 1 else 0):
            one, two = self.rng.choice(len(members), 2, replace=False)
            children.append(mixed(members[one].mixture, members[two].mixture, self.rng))
        return [child for child in children if child is not None]

    def _grown_as_counts(self, child: Mixture, bar: float) -> Member:
        """A child after some passes; few of them where its loss stays above a bar."""
        growth = self.growth
        found = Member(*self.counts.improved(child, growth.lifted, CHILD_LIFT))
        if found.loss > bar:
            return found
        return Member(*self.counts.improved(found.mixture, growth.last, 0.0))

    def _grown(self, child: Mixture, bar: float) -> Member:
        """A child after some steps under the loss of the problem; few of them where its loss stays
        above a bar.
        """
        assert self.own is not None
        _, child = self.own.improved(child, OWN_GROWTH.lifted, OWN_LIFT)
        found = self.own.descended(child, OWN_GROWTH.tried, LEFT * self.resolution)
        if found.loss <= bar + HOPELESS * self.resolution:
            return self._descended(found.mixture, OWN_GROWTH.last)
        return Member(found.loss, found.mixture)

    @property
    def _is_over(self) -> bool:
        """Whether half of the epochs are spent that the user allows, a member being one: the other
        half is for descents from the best of them."""
        return self.tracker.epoch >= self.tracker.settings.stopping.max_epochs / 2

    def _admit(self, members: list[Member], child: Member) -> None:
        """Put a child in the place of its twin or of the worst, if it is better."""
        if not child.loss < members[-1].loss:
            return
        place = next(
            (k for k, other in enumerate(members) if are_twins(child.mixture, other.mixture)),
            len(members) - 1,
        )
        if child.loss < members[place].loss:
            members[place] = child
            members.sort(key=attrgetter("loss"))

    def _side_by_side(self, wanted: Sequence[Callable[[], Member]]) -> list[Member]:
        """Make some mixtures at the same time; what is random was drawn before, in order."""
        self.tracker.check_time()
        made: dict[int, Member] = {}
        left = deque(enumerate(wanted))

        def work(*_: int) -> None:
            """Make whatever is next: some are given up early, and take a third of the time."""
            while left:
                try:
                    k, make = left.popleft()
                except IndexError:  # another thread has taken the last one
                    return
                made[k] = make()

        share(work, len(wanted), self.n_threads)
        self.tracker.entries += len(wanted) * (START.first + START.last) * self.nnz
        self.tracker.epoch += len(wanted)
        return [made[k] for k in range(len(wanted))]

    def _new_start(self) -> Callable[[], Member]:
        factors = marginal_factors(self.as_counts, math.ceil(WIDTH * self.problem.rank), self.rng)
        wide = Mixture.of(stack(factors), self.problem.shape)
        return partial(self._merged, wide)

    def _merged(self, mixture: Mixture) -> Member:
        """A wide mixture after merges of its components to the rank, with passes in between."""
        schedule = self.start
        _, mixture = self.counts.improved(mixture, schedule.first, 0.0, SMOOTHING)
        while mixture.rank > self.problem.rank:
            mixture = merged_by_information(mixture, mixture.rank - 1)
            _, mixture = self.counts.improved(mixture, schedule.between, 0.0, SMOOTHING)
        return Member(*self.counts.improved(mixture, schedule.last, MERGED_LIFT))

    def _under_own_loss(self, mixture: Mixture) -> Member:
        """A mixture of counts, brought to the level of the data under the loss of the problem."""
        assert self.own is not None
        mean = self.problem.storage.mean()
        level = self.problem.loss.link(mean) / max(mean, 1e-300)
        raised = Mixture(mixture.columns, level * mixture.weights, mixture.shape)
        _, raised = self.own.improved(raised, FIRST_OWN_PASSES, 0.0)
        return self._descended(raised, OWN_GROWTH.last)

    def _descended(self, mixture: Mixture, n_steps: int) -> Member:
        assert self.own is not None
        found = self.own.descended(mixture, n_steps, LEFT * self.resolution)
        return Member(found.loss, found.mixture)


def cosines_between(one: Mixture, two: Mixture) -> np.ndarray:
    """The products of cosines of all components of one mixture with those of another."""
    alike = one.units[0].T @ two.units[0]
    for A, B in zip(one.units[1:], two.units[1:], strict=True):
        alike *= A.T @ B
    return alike


def paired(one: Mixture, two: Mixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The components of two mixtures that are most alike, and the products of their cosines."""
    cosines = cosines_between(one, two)
    mine, yours = best_pairs(np.nan_to_num(cosines))
    return mine, yours, cosines[mine, yours]


def are_twins(one: Mixture, two: Mixture) -> bool:
    """Whether two mixtures have the same components."""
    # Most differ in a component that nothing in the other is like, which is seen at once.
    if not (cosines_between(one, two).max(axis=0) >= TWINS).all():
        return False
    return bool((paired(one, two)[2] >= TWINS).all())


def mixed(one: Mixture, two: Mixture, rng: np.random.Generator) -> Mixture | None:
    """A child of two mixtures; None where they have the same components.

    Half of the children have one of each two components that are most alike: such children
    differ little from their parents, and most of them are good ones. The others have the components
    that the parents share, and any of their others: among those are some that no pairs lead to.
    """
    mine, yours, cosines = paired(one, two)
    same = cosines >= TWINS
    if same.all():
        return None
    from_one = rng.random(same.size) < 0.5
    from_two = ~from_one
    if rng.random() < 0.5:
        others = np.flatnonzero(~same)
        drawn = rng.permutation(2 * others.size)[: others.size]
        from_one[others] = from_two[others] = False
        from_one[others[drawn[drawn < others.size]]] = True
        from_two[others[drawn[drawn >= others.size] - others.size]] = True
    columns = np.hstack([one.columns[:, mine[from_one]], two.columns[:, yours[from_two]]])
    weights = np.concatenate([one.weights[mine[from_one]], two.weights[yours[from_two]]])
    return Mixture(np.ascontiguousarray(columns), weights, one.shape)
