"""The comparison of a rank with lower and higher ones, on cells that are held out."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from smartcpd._common import threads
from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._inference.rank_check.trials import Trial, Trials
from smartcpd._inference.rank_check.verdict import RankVerdict, Suits
from smartcpd._inference.selection.folds import one_fold
from smartcpd._problem.problem import Problem

HELD_OUT = 5
"""One in so many cells is held out."""
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
    fold = one_fold(problem.storage, HELD_OUT, np.random.default_rng(0))
    if fold is None:
        return RankVerdict(rank, Suits.UNKNOWN)
    trials = Trials(problem, fold, fit_seconds, threads.resolve(n_threads))
    with np.errstate(all="ignore"):
        found = _compared(trials, trials.refitted(factors))
    return replace(found, seconds=time.perf_counter() - began)


def _compared(trials: Trials, own: Trial) -> RankVerdict:
    """The verdict on a model that was refitted without the held-out cells."""
    verdict = RankVerdict(own.rank, Suits.UNKNOWN, explained=trials.explained(own))
    for fewer in sorted({math.floor(share * own.rank) for share in FEWER} - {0}, reverse=True):
        if trials.clock.over:
            break
        low = trials.narrower(own, fewer)
        verdict = _with_tried(verdict, low)
        if _is_as_good(trials, low, own):
            low = _lowest(trials, own, low)
            return replace(
                verdict,
                suits=Suits.HIGH,
                better=low.rank,
                better_explained=trials.explained(low),
                surplus=_unmatched(own, low),
            )
    high = None if trials.clock.over else trials.wider(own, 2 * own.rank)
    if high is None:
        return verdict
    verdict = _with_tried(verdict, high)
    share = trials.explained(high)
    if trials.behind(own, high) >= BETTER and _gains(verdict.explained, share) >= WORTH:
        return replace(verdict, suits=Suits.LOW, better=high.rank, better_explained=share)
    # Of a comparison that was cut short nothing is said.
    return verdict if high.cut else replace(verdict, suits=Suits.WELL)


def _with_tried(verdict: RankVerdict, trial: Trial) -> RankVerdict:
    """The same, with another rank among those that were compared to the end."""
    return verdict if trial.cut else replace(verdict, tried=(*verdict.tried, trial.rank))


def _gains(one: float | None, other: float | None) -> float:
    """What one model explains less than another, as a share of the former."""
    if one is None or other is None:
        return math.inf
    return (other - one) / max(one, TINY)


def _is_as_good(trials: Trials, low: Trial, own: Trial) -> bool:
    """Whether fewer components predict as well.

    A refit remembers cells that it has seen before, the more of them the more components it has.
    Where a model is a little better than a smaller one, the components that this one lacks are
    therefore made anew, from training cells alone: if these describe the training cells about as
    well and do not help with the others, nothing was there to be found.
    """
    if trials.behind(low, own) <= AS_GOOD:
        return True
    if _gains(trials.explained(low), trials.explained(own)) >= LITTLE or trials.clock.over:
        return False
    again = trials.wider(low, own.rank)
    if again is None or again.cut:
        return False
    gained = low.training_loss - again.training_loss
    caught_up = gained >= CAUGHT_UP * (low.training_loss - own.training_loss)
    return caught_up and trials.behind(low, again) < BETTER


def _lowest(trials: Trials, own: Trial, found: Trial) -> Trial:
    """The lowest rank that is as good as a model's own, by halving what is in question."""
    low, high = 0, found.rank  # the first is too low, the second is as good
    while high - low > 1 and not trials.clock.over:
        middle = trials.narrower(found, (low + high) // 2)
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
