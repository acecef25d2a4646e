"""The comparison of a rank with lower and higher ones, on cells that are held out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from smartcpd._common import threads
from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._inference.rank_check.trials import Answer, Clock, Look, Trial, Trials
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd._inference.selection.folds import one_fold
from smartcpd._problem.problem import Problem

HELD_OUT = (5, 20)
"""One in so many cells is held out, the first of small data and at most the second of large."""
ENOUGH = 24_000
"""So many stored cells among those that are held out tell enough."""
AS_GOOD = 2.5
"""Standard errors by which a lower rank may predict worse and still count as good."""
BETTER = 2.0
"""Standard errors by which a higher rank must predict better."""
WORTH = 0.02
"""The least gain of a higher rank, as a share of what the model explains."""
STEADY = 0.001
"""The share by which what a model explains of held-out cells may still move in a doubling of the
passes, when it is refitted at its own rank."""
LOOKS_AT_OWN = 5
"""Looks after which it is taken as it is: what it still remembers is allowed for."""
PATIENCE = 3.0
"""How many times what a doubling of the passes brought all further passes may bring."""
LOOKS_AT_MERGED, LOOKS_AT_PRUNED = 2, 4
"""Looks before fewer components are given up. Those that are left must grow into the place of those
that were left out, slowly at first.
"""
OUT_OF_REACH = 16.0
"""How many times what chance alone brings merged components may lack on the cells that they are
fitted to; if they lack more, another start with as few would not do either.
"""
FAR_LESS = 0.05
"""A share of the deviance of held-out cells that matters, whatever their number."""
MOST = 0.5
"""The share of what is unexplained that is most of it."""
LOOKS_AT_MORE = 6
"""Looks at new components before they are given up: they begin small."""
TINY = 1e-300
LITTLE_FEWER, HALF, FAR_FEWER = 0.75, 0.5, 0.25
"""The shares of the components that should not do if the rank is right. The lower ones are for
models with far too many, which have learnt noise by heart: a little fewer are about as bad.
"""


def checked_rank(
    problem: Problem,
    factors: list[np.ndarray],
    fit_seconds: float = 0.0,
    n_threads: int | None = None,
) -> RankVerdict:
    """Compare the rank of a model with others.

    Parameters
    ----------
    problem : Problem
        The data in memory, and the loss and constraints of the fit.
    factors : list of array
        The factors of the model, with the weights in them.
    fit_seconds : float
        How long the fit took, which bounds how long this may take.
    """
    began = time.perf_counter()
    clock = Clock(fit_seconds)
    rank = problem.rank
    least, most = HELD_OUT
    share = max(least, min(problem.storage.n_stored // ENOUGH, most))
    fold = one_fold(problem.storage, share, np.random.default_rng(0))
    if fold is None:
        return RankVerdict(rank, Suits.UNKNOWN)
    trials = Trials(problem, fold, clock, threads.resolve(n_threads))
    with np.errstate(all="ignore"):
        own = trials.refitted(factors, _settles(trials))
        found = Comparison(trials, own).verdict()
    return replace(found, seconds=time.perf_counter() - began)


def _settles(trials: Trials) -> Answer:
    """Whether what a refit explains of held-out cells moves no more: the model has forgotten the
    cells that are held out.
    """

    def answered(looks: list[Look]) -> bool:
        if len(looks) < 2 or len(looks) >= LOOKS_AT_OWN:
            return len(looks) >= LOOKS_AT_OWN
        before, now = (trials.explained(look) for look in looks[-2:])
        return before is not None and abs(_gains(before, now)) <= STEADY

    return answered


@dataclass
class Comparison:
    """A model that was refitted without the held-out cells, beside models of other ranks."""

    trials: Trials
    own: Trial
    tried: list[int] = field(default_factory=list)
    """The ranks that were compared to the end."""
    hopeless: int = 0
    """The highest rank found so far behind on training cells that no lower one can do."""

    def verdict(self) -> RankVerdict:
        """Compare with one rank after the other, until one speaks against the model's own.

        A little fewer components come first, since they take the least time.
        """
        for step in (
            partial(self._against_fewer, LITTLE_FEWER),
            partial(self._against_fewer, HALF),
            self._against_more,
            partial(self._against_fewer, FAR_FEWER),
        ):
            if self.own.cut or self.trials.clock.over:
                return self._said(Suits.UNKNOWN)
            suits, other = step()
            if suits is Suits.HIGH and other is not None and self._says_nothing(other):
                return self._said(Suits.UNKNOWN)
            if suits is not Suits.WELL:
                return self._said(suits, other)
        return self._said(Suits.UNKNOWN if self._says_nothing(self.own) else Suits.WELL)

    def _says_nothing(self, trial: Trial) -> bool:
        """Whether a model predicts worse than a constant does: it suits nothing, and the data is
        too little to say more, as where rows have a handful of events each.
        """
        explained = self.trials.explained(trial)
        return explained is not None and explained <= 0

    def _said(self, suits: Suits, other: Trial | None = None) -> RankVerdict:
        """A verdict, with the model of another rank that shows it."""
        found = RankVerdict(
            self.own.rank, suits, explained=self.trials.explained(self.own), tried=tuple(self.tried)
        )
        if other is None:
            return found
        surplus = _unmatched(self.own, other) if suits is Suits.HIGH else ()
        share = self.trials.explained(other)
        return replace(found, better=other.rank, better_explained=share, surplus=surplus)

    def _against_fewer(self, share: float) -> tuple[Suits, Trial | None]:
        """The comparison with a share of the components; "unknown" if it was cut short."""
        rank = math.floor(share * self.own.rank)
        if rank <= self.hopeless or rank in self.tried:
            return Suits.WELL, None
        low = self._fewer(self.own, rank)
        if not low.cut:
            self.tried.append(rank)
        if self._is_as_good(low, rank):
            return Suits.HIGH, self._lowest(low)
        if self._is_out_of_reach(low, rank):
            self.hopeless = rank
        judged = not low.cut and self._training_tells(low, rank) and self._is_worse(low, self.own)
        return Suits.WELL if judged else Suits.UNKNOWN, None

    def _against_more(self) -> tuple[Suits, Trial | None]:
        """The comparison with more than twice as many components."""
        high = self._more()
        if high is None:
            return Suits.UNKNOWN, None
        if not high.cut:
            self.tried.append(high.rank)
        if self._is_better(high):
            return Suits.LOW, high
        return Suits.UNKNOWN if high.cut else Suits.WELL, None

    def _fewer(self, source: Trial, rank: int) -> Trial:
        """A model with fewer components than another, run until it is as good as the model in
        question or cannot become so: components are merged, and if that does not do, left out.
        """

        def answered_after(least: int) -> Answer:
            def answered(looks: list[Look]) -> bool:
                if self._is_as_good(looks[-1], rank):
                    return True
                return len(looks) >= least and self._is_given_up(looks[-2], looks[-1], rank)

            return answered

        merged = self.trials.merged(source, rank, answered_after(LOOKS_AT_MERGED))
        if merged.cut or self._is_as_good(merged, rank) or self._is_out_of_reach(merged, rank):
            return merged
        pruned = self.trials.pruned(source, rank, answered_after(LOOKS_AT_PRUNED))
        if self._is_as_good(pruned, rank):
            return pruned
        return min(merged, pruned, key=lambda trial: trial.training_loss)

    def _lowest(self, found: Trial) -> Trial:
        """The lowest rank that is as good as a model's own and as those that were found before it,
        by halving what is in question. A model with far too many components predicts so badly that
        one of too few may be as good; others between them are better than both.
        """
        low, high = self.hopeless, found.rank  # the first is too low, the second is as good
        found = self._settled(found)
        while high - low > 1 and not self.trials.clock.over:
            middle = self._fewer(found, (low + high) // 2)
            if self._is_as_good(middle, middle.rank):
                middle = self._settled(middle)
                if not self._is_behind(middle, found):
                    found, high = middle, middle.rank
                    continue
            low = middle.rank
        return found

    def _settled(self, trial: Trial) -> Trial:
        """A model that was left when it was as good as the one in question, run on to its end."""
        further = self.trials.refitted(trial.factors, _settles(self.trials))
        return trial if further.cut else further

    def _is_as_good(self, low: Look, rank: int) -> bool:
        """Whether a model of a lower rank does as well.

        A refit remembers cells that it has seen before, the more of them the more components it
        has, so that its lead on held-out cells is an upper bound. What components bring on the
        cells that they are fitted to is therefore looked at as well: if chance alone brings as
        much, they may be nothing else.
        """
        if not self._is_behind(low, self.own):
            return True
        return self._training_tells(low, rank) and self._shortfall(low) <= self._by_chance(rank)

    def _is_behind(self, low: Look, other: Look) -> bool:
        """Whether a model predicts worse than another, surely or by far: a wide gap is no
        agreement, though held-out cells be too few, or a few of them too large, to be sure of it.
        """
        one, two = self.trials.explained(low), self.trials.explained(other)
        far = one is not None and two is not None and two - one > FAR_LESS
        return far or self._is_worse(low, other)

    def _is_worse(self, low: Look, other: Look) -> bool:
        gap = self.trials.behind(low, other)
        return gap.value > AS_GOOD * gap.error

    def _training_tells(self, low: Look, rank: int) -> bool:
        """Whether the cells that models are fitted to tell components from noise at all: they do
        not where noise alone could take most of what the lower rank leaves unexplained, as in a
        table of a few dozen amounts.
        """
        left = low.training_loss - self.trials.least_training_loss
        return not self._by_chance(rank) > MOST * left

    def _is_given_up(self, before: Look, now: Look, rank: int) -> bool:
        """Whether further passes will not make a model of a lower rank as good, by what a doubling
        of the passes brought.
        """
        gap = self.trials.behind(now, self.own)
        if gap.value - AS_GOOD * gap.error <= PATIENCE * self.trials.behind(before, now).value:
            return False
        brought = before.training_loss - now.training_loss
        return self._shortfall(now) - self._by_chance(rank) > PATIENCE * brought

    def _is_out_of_reach(self, low: Look, rank: int) -> bool:
        return self._shortfall(low) > OUT_OF_REACH * self._by_chance(rank)

    def _shortfall(self, low: Look) -> float:
        """By how much the loss of training cells is higher than the model's."""
        return low.training_loss - self.own.training_loss

    def _by_chance(self, rank: int) -> float:
        """By how much it may be higher at a rank if the components that this lacks are noise."""
        return (self.own.rank - rank) * self._gain_by_chance

    @cached_property
    def _gain_by_chance(self) -> float:
        return self.trials.gain_by_chance(self.own)

    def _more(self) -> Trial | None:
        """A model with more components, run until it is better or cannot become so."""
        explained = self.trials.explained(self.own)

        def answered(looks: list[Look]) -> bool:
            if self._is_better(looks[-1]) or self._learns_by_heart(looks):
                return True
            if len(looks) < LOOKS_AT_MORE:
                return False
            before, now = (_gains(explained, self.trials.explained(look)) for look in looks[-2:])
            return now + PATIENCE * max(now - before, 0.0) < WORTH

        rank = self.own.rank
        return self.trials.wider(self.own, rank, max(1, rank // 4), answered)

    def _learns_by_heart(self, looks: list[Look]) -> bool:
        """Whether more components, which already describe training cells better, predict the others
        worse and worse.
        """
        if len(looks) < LOOKS_AT_MORE - 1 or self._shortfall(looks[-2]) > 0:
            return False
        one, two, three = (self.trials.explained(look) for look in looks[-3:])
        return _gains(one, two) < 0 and _gains(two, three) < 0

    def _is_better(self, high: Look) -> bool:
        """Whether more components predict held-out cells better, and by enough to matter."""
        gap = self.trials.behind(self.own, high)
        share = self.trials.explained(high)
        if not gap.value >= BETTER * gap.error > 0 or (share is not None and share <= 0):
            return False
        return _gains(self.trials.explained(self.own), share) >= WORTH


def _gains(one: float | None, other: float | None) -> float:
    """What one model explains less than another, as a share of the former."""
    if one is None or other is None:
        return math.inf
    return (other - one) / max(one, TINY)


def _unmatched(own: Trial, low: Trial) -> tuple[int, ...]:
    """The components of a model that are least like any of a smaller one."""
    alike = mode_cosines(own.factors, low.factors).prod(axis=0)
    matched = set(best_pairs(alike)[0].tolist())
    return tuple(r for r in range(own.rank) if r not in matched)
