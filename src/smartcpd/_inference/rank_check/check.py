"""The comparison of a rank with lower and higher ones, on cells that are held out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from smartcpd._common import threads
from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._inference.rank_check.trials import Look, Trial, Trials
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
LITTLE = 0.05
"""The gain over fewer components up to which it may be what a refit remembers."""
CAUGHT_UP = 0.8
"""The share of the gain on training cells that components made anew must reach to be compared."""
STEADY = 0.001
"""The share by which what a model explains of held-out cells may still move in a doubling of the
passes, when it is refitted at its own rank."""
LOOKS_AT_OWN = 5
"""Looks after which it is taken as it is: what it still remembers is allowed for."""
PATIENCE = 3.0
"""How many times what a doubling of the passes brought all further passes may bring."""
LOOKS_AT_MORE = 6
"""Looks at new components before they are given up: they begin small."""
TINY = 1e-300
FEWER = (0.75, 0.25)
"""The shares of the components that should not do if the rank is right. The second is for models
with far too many, which have learnt noise by heart: a little fewer are about as bad.
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
    rank = problem.rank
    least, most = HELD_OUT
    share = max(least, min(problem.storage.n_stored // ENOUGH, most))
    fold = one_fold(problem.storage, share, np.random.default_rng(0))
    if fold is None:
        return RankVerdict(rank, Suits.UNKNOWN)
    trials = Trials(problem, fold, fit_seconds, threads.resolve(n_threads))
    with np.errstate(all="ignore"):
        found = _compared(trials, _own(trials, factors))
    return replace(found, seconds=time.perf_counter() - began)


def _own(trials: Trials, factors: list[np.ndarray]) -> Trial:
    """The model itself, once it has forgotten the cells that are held out."""
    return trials.refitted(factors, _settles(trials))


def _settles(trials: Trials) -> Callable[[list[Look]], bool]:
    """Whether what a refit explains of held-out cells moves no more."""

    def answered(looks: list[Look]) -> bool:
        if len(looks) < 2 or len(looks) >= LOOKS_AT_OWN:
            return len(looks) >= LOOKS_AT_OWN
        before, now = (trials.explained(look) for look in looks[-2:])
        return before is not None and abs(_gains(before, now)) <= STEADY

    return answered


def _compared(trials: Trials, own: Trial) -> RankVerdict:
    """The verdict on a model that was refitted without the held-out cells.

    A little fewer components are compared first, since that takes the least time.
    """
    verdict = RankVerdict(own.rank, Suits.UNKNOWN, explained=trials.explained(own))
    little, far = FEWER
    for step in (_with_fewer(little), _with_more, _with_fewer(far)):
        if own.cut or trials.clock.over:
            return verdict
        verdict, settled = step(trials, own, verdict)
        # Of a comparison that was cut short nothing is said.
        if verdict.suits is not Suits.UNKNOWN or not settled:
            return verdict
    # A model that predicts worse than a constant does suits nothing, and the data is too little to
    # say more.
    worse = verdict.explained is not None and verdict.explained <= 0
    return verdict if worse else replace(verdict, suits=Suits.WELL)


Step = Callable[[Trials, Trial, RankVerdict], tuple[RankVerdict, bool]]
"""A comparison: the verdict after it, and whether it came to its end."""


def _with_fewer(share: float) -> Step:
    """The comparison with a share of the components."""

    def step(trials: Trials, own: Trial, verdict: RankVerdict) -> tuple[RankVerdict, bool]:
        rank = math.floor(share * own.rank)
        if rank == 0 or rank in verdict.tried:
            return verdict, True
        low = _fewer(trials, own, own, rank)
        verdict = _with_tried(verdict, low)
        as_good = _is_as_good(trials, low, own)
        if not as_good:
            return verdict, not low.cut and as_good is not None
        low = _lowest(trials, own, low)
        found = replace(
            verdict,
            suits=Suits.HIGH,
            better=low.rank,
            better_explained=trials.explained(low),
            surplus=_unmatched(own, low),
        )
        return found, True

    return step


def _with_more(trials: Trials, own: Trial, verdict: RankVerdict) -> tuple[RankVerdict, bool]:
    """The comparison with half as many components again, or more."""
    high = _more(trials, own)
    if high is None:
        return verdict, False
    verdict = _with_tried(verdict, high)
    if not _is_better(trials, own, high):
        return verdict, not high.cut
    share = trials.explained(high)
    return replace(verdict, suits=Suits.LOW, better=high.rank, better_explained=share), True


def _fewer(trials: Trials, own: Trial, source: Trial, rank: int) -> Trial:
    """A model with fewer components than another, run until it is as good as the model in question
    or cannot become so.
    """

    def answered(looks: list[Look]) -> bool:
        gap = trials.behind(looks[-1], own)
        beyond = gap.value - AS_GOOD * gap.error
        if beyond <= 0:
            return True
        return len(looks) > 1 and beyond > PATIENCE * trials.behind(looks[-2], looks[-1]).value

    return trials.narrower(source, rank, answered)


def _more(trials: Trials, own: Trial) -> Trial | None:
    """A model with more components than one, run until it is better or cannot become so."""
    explained = trials.explained(own)

    def answered(looks: list[Look]) -> bool:
        if _is_better(trials, own, looks[-1]):
            return True
        if len(looks) < LOOKS_AT_MORE:
            return False
        before, now = (_gains(explained, trials.explained(look)) for look in looks[-2:])
        return now + PATIENCE * max(now - before, 0.0) < WORTH

    new = max(1, own.rank // 4)
    return trials.wider(own, max(1, own.rank // 2), new, answered)


def _is_better(trials: Trials, own: Trial, high: Look) -> bool:
    """Whether more components predict held-out cells better, and by enough to matter."""
    gap = trials.behind(own, high)
    share = trials.explained(high)
    if not gap.value >= BETTER * gap.error > 0 or (share is not None and share <= 0):
        return False
    return _gains(trials.explained(own), share) >= WORTH


def _with_tried(verdict: RankVerdict, trial: Trial) -> RankVerdict:
    """The same, with another rank among those that were compared to the end."""
    return verdict if trial.cut else replace(verdict, tried=(*verdict.tried, trial.rank))


def _gains(one: float | None, other: float | None) -> float:
    """What one model explains less than another, as a share of the former."""
    if one is None or other is None:
        return math.inf
    return (other - one) / max(one, TINY)


def _is_as_good(trials: Trials, low: Trial, own: Trial) -> bool | None:
    """Whether fewer components predict as well; None if there was no time to find out.

    A refit remembers cells that it has seen before, the more of them the more components it has.
    Where a model is a little better than a smaller one, the components that this one lacks are
    therefore made anew, from training cells alone: if these describe the training cells about as
    well and do not help with the others, nothing was there to be found.
    """
    gap = trials.behind(low, own)
    if gap.value <= AS_GOOD * gap.error:
        return True
    if _gains(trials.explained(low), trials.explained(own)) >= LITTLE:
        return False
    # More passes alone must not pass for the merit of more components.
    low = trials.refitted(low.factors, _settles(trials))
    gap = trials.behind(low, own)
    if gap.value <= AS_GOOD * gap.error:
        return True
    enough = low.training_loss - CAUGHT_UP * (low.training_loss - own.training_loss)

    def helps(look: Look) -> bool:
        found = trials.behind(low, look)
        return found.value >= BETTER * found.error > 0

    lacking = own.rank - low.rank
    again = trials.wider(
        low,
        lacking // 2,
        lacking - lacking // 2,
        lambda looks: helps(looks[-1]) or looks[-1].training_loss <= enough,
    )
    if again is None or helps(again):
        return False
    if again.training_loss <= enough:
        return True
    return None if trials.clock.over else False


def _lowest(trials: Trials, own: Trial, found: Trial) -> Trial:
    """The lowest rank that is as good as a model's own, by halving what is in question."""
    low, high = 0, found.rank  # the first is too low, the second is as good
    while high - low > 1 and not trials.clock.over:
        middle = _fewer(trials, own, found, (low + high) // 2)
        if _is_as_good(trials, middle, own):
            found, high = middle, middle.rank
        else:
            low = middle.rank
    return found


def _unmatched(own: Trial, low: Trial) -> tuple[int, ...]:
    """The components of a model that are least like any of a smaller one."""
    alike = mode_cosines(own.factors, low.factors).prod(axis=0)
    matched = set(best_pairs(alike)[0].tolist())
    return tuple(r for r in range(own.rank) if r not in matched)
