"""The rules of a selection: how far ranks are tried, which are compared, and which is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def contenders(trials: Trials, tried: dict[Candidate, list[int]]) -> list[Key]:
    """Return the losses, and the ranks of each, that the first fold does not rule out."""
    tops = {c: top_of(trials, [(c, rank) for rank in ranks]) for c, ranks in tried.items()}
    leader = top_of(trials, list(tops.values()))
    found = []
    for candidate, top in tops.items():
        if not _is_near(trials, top, leader, CLEARLY):
            continue
        keys = [(candidate, rank) for rank in tried[candidate]]
        found += [key for key in keys if _is_near(trials, key, top, CLEARLY)]
    return found


def chosen(trials: Trials, keys: Sequence[Key]) -> Choice:
    """Choose the first loss, and its lowest rank, within one standard error of the best.

    Errors are those of differences on the same cells: what makes a cell hard to predict for one
    candidate makes it hard for all, and cancels.
    """
    by_loss: dict[Candidate, list[Key]] = {}
    for key in keys:
        by_loss.setdefault(key[0], []).append(key)
    tops = [top_of(trials, own) for own in by_loss.values()]
    leader = top_of(trials, tops)
    top = next(key for key in tops if _is_as_good(trials, key, leader))
    own = sorted(by_loss[top[0]], key=lambda key: key[1])
    return Choice(next(key for key in own if _is_near(trials, key, top, ONE)), top)


def _is_as_good(trials: Trials, key: Key, leader: Key) -> bool:
    """Whether a loss is as good as the best.

    A parameter more has to gain what the Bayesian information criterion asks for: differences
    between nearly equal losses have tiny errors, and a little more scatter always makes up for a
    little of the error of the factors.
    """
    if _is_near(trials, key, leader, ONE):
        return True
    n_more = leader[0].n_estimated - key[0].n_estimated
    n_cells = trials.n_observed
    return behind(trials, key, leader).value * n_cells <= n_more * 0.5 * math.log(n_cells)


def behind(trials: Trials, key: Key, other: Key) -> Mean:
    """Return by how much one candidate is worse than another, per cell."""
    return difference(trials.scores[other], trials.scores[key])


def _gain(trials: Trials, key: Key, other: Key) -> Mean:
    return difference(trials.scores[key], trials.scores[other])


def top_of(trials: Trials, keys: Sequence[Key]) -> Key:
    """Return the candidate with the best score."""
    return max(keys, key=lambda key: summed(trials.scores[key].values(), "score").value)


def _is_near(trials: Trials, key: Key, other: Key, errors: float) -> bool:
    deficit = behind(trials, key, other)
    return key == other or deficit.value <= errors * deficit.error
