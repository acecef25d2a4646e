"""The rules of a selection: how far ranks are tried, which are compared, and which is chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from smartcpd._inference.selection.candidates import Candidate
from smartcpd._inference.selection.scores import Mean, difference, summed
from smartcpd._inference.selection.trials import Trials

PATIENCE = 3
"""No more ranks are tried after so many in a row that are not better than the best so far."""
ONE = 1.0
"""Number of standard errors within which the simpler of two candidates is preferred."""
CLEARLY = 4.0
"""A candidate that is worse by so many standard errors would not win with more folds."""

Key = tuple[Candidate, int]


class Choice(NamedTuple):
    """The candidate that was chosen, and the best one that it was compared with."""

    key: Key
    best: Key
    """The candidate with the best score; the choice is the simplest that is about as good."""


def walk(trials: Trials, candidate: Candidate, ranks: Sequence[int]) -> list[int]:
    """Score ranks on the first fold, upwards, until more components have stopped to help."""
    best, waited, tried = ranks[0], 0, []
    for rank in ranks:
        trials.score(candidate, rank, 0)
        tried.append(rank)
        gain = _gain(trials, (candidate, rank), (candidate, best))
        if rank == best or gain.value > ONE * gain.error:
            best, waited = rank, 0
        else:
            waited += 1
        if waited == PATIENCE:
            break
    return tried


def walk_near(
    trials: Trials, candidate: Candidate, ranks: Sequence[int], plain: Sequence[Key]
) -> list[int]:
    """Score ranks of a loss on the first fold, near those at which its plain relative is good.

    It starts at the lowest that is not clearly worse than the relative's best, and goes upwards as
    ever, then downwards until a rank is clearly worse. Lower ones are not tried.
    """
    start = min(rank for _, rank in near(trials, plain))
    tried = walk(trials, candidate, [rank for rank in ranks if rank >= start])
    for rank in reversed([rank for rank in ranks if rank < start]):
        top = top_of(trials, [(candidate, each) for each in tried])
        if not is_near(trials, (candidate, tried[0]), top, CLEARLY):
            break
        trials.score(candidate, rank, 0)
        tried.insert(0, rank)
    return tried


def contenders(
    trials: Trials, tried: Mapping[Candidate, Sequence[int]]
) -> dict[Candidate, list[Key]]:
    """Return the losses that the first fold does not rule out, each with those of its ranks.

    A loss is out if another at any of its ranks, best or not, is clearly better than its best: two
    losses of the same rank are compared with the least error.
    """
    own = {c: [(c, rank) for rank in ranks] for c, ranks in tried.items()}
    tops = {c: top_of(trials, keys) for c, keys in own.items()}
    everyone = [key for keys in own.values() for key in keys]
    return {
        c: near(trials, own[c])
        for c, top in tops.items()
        if all(is_near(trials, top, key, CLEARLY) for key in everyone)
    }


def near(trials: Trials, keys: Sequence[Key], errors: float = CLEARLY) -> list[Key]:
    """Return the candidates that are at most so many standard errors behind the best of them."""
    top = top_of(trials, keys)
    return [key for key in keys if is_near(trials, key, top, errors)]


def best_loss(trials: Trials, tops: Sequence[Key]) -> Key:
    """Return the first loss, each at its best rank, that is as good as the best of them."""
    leader = top_of(trials, tops)
    return next(key for key in tops if _is_as_good(trials, key, leader))


def _is_as_good(trials: Trials, key: Key, leader: Key) -> bool:
    """Whether a loss is as good as the best.

    A parameter more has to gain what the Bayesian information criterion asks for: differences
    between nearly equal losses have tiny errors, and a little more scatter always makes up for a
    little of the error of the factors.
    """
    if is_near(trials, key, leader, ONE):
        return True
    n_more = leader[0].n_estimated - key[0].n_estimated
    n_cells = trials.n_observed
    return behind(trials, key, leader).value * n_cells <= n_more * 0.5 * math.log(n_cells)


def behind(trials: Trials, key: Key, other: Key) -> Mean:
    """Return by how much one candidate is worse than another, per cell.

    Errors are those of differences on the same cells: what makes a cell hard to predict for one
    candidate makes it hard for all, and cancels.
    """
    return difference(trials.scores[other], trials.scores[key])


def _gain(trials: Trials, key: Key, other: Key) -> Mean:
    return difference(trials.scores[key], trials.scores[other])


def top_of(trials: Trials, keys: Sequence[Key]) -> Key:
    """Return the candidate with the best score."""
    return max(keys, key=lambda key: summed(trials.scores[key].values(), "score").value)


def is_near(trials: Trials, key: Key, other: Key, errors: float) -> bool:
    """Whether a candidate is at most so many standard errors behind another."""
    deficit = behind(trials, key, other)
    return key == other or deficit.value <= errors * deficit.error
