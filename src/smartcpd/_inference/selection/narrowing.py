"""The folds after the first, spent on the candidates that the choice hangs on.

Scores rise with the rank up to the best one. So the best rank of each loss is scored on all folds,
which decides about the loss; then the lowest rank that is about as good is looked for by halving.
A rank is fitted to no more folds once it is clearly worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

from smartcpd._inference.selection.candidates import Candidate, stages
from smartcpd._inference.selection.rule import (
    CLEARLY,
    ONE,
    Choice,
    Key,
    behind,
    best_loss,
    is_near,
    near,
    top_of,
)
from smartcpd._inference.selection.trials import Trials

FOLDS_AT_A_TIME = 2
"""Number of folds after which it is asked whether a rank is worse for certain."""
DOUBT = 2.0
"""Number of standard errors by which the folds that are left may differ from no difference."""


def chosen(trials: Trials, contenders: dict[Candidate, list[Key]]) -> Choice:
    """Choose the first loss, and its lowest rank, within one standard error of the best."""
    n_folds = len(trials.folds)
    leading = {c: _leading(trials, keys) for c, keys in contenders.items()}
    doubtful = [key for keys in leading.values() if len(keys) > 1 for key in keys]
    _score(trials, doubtful, range(1, 2))
    tops = [top_of(trials, keys) for keys in leading.values()]
    _score(trials, tops, range(1, n_folds))
    best = best_loss(trials, tops)
    lower = sorted((key for key in contenders[best[0]] if key[1] < best[1]), key=_rank)
    return Choice(_lowest(trials, [*lower, best]), best)


def _rank(key: Key) -> int:
    return key[1]


def _leading(trials: Trials, keys: Sequence[Key]) -> list[Key]:
    """Return the best rank on the first fold, and the higher ones that another fold may show to be
    better.
    """
    top = top_of(trials, keys)
    return [key for key in near(trials, keys, ONE) if key[1] >= top[1]]


def _lowest(trials: Trials, keys: Sequence[Key]) -> Key:
    """Return the first that is about as good as the last, by halving."""
    low, high = 0, len(keys) - 1
    while low < high:
        middle = (low + high) // 2
        if _is_as_good(trials, keys[middle], keys[-1]):
            high = middle
        else:
            low = middle + 1
    return keys[high]


def _is_as_good(trials: Trials, key: Key, best: Key) -> bool:
    """Whether a rank is within one standard error of the best, on as many folds as it takes."""
    n_folds = len(trials.folds)
    for first in range(1, n_folds, FOLDS_AT_A_TIME):
        if _is_worse(trials, key, best):
            return False
        _score(trials, [key], range(first, min(first + FOLDS_AT_A_TIME, n_folds)))
    return is_near(trials, key, best, ONE)


def _is_worse(trials: Trials, key: Key, best: Key) -> bool:
    """Whether a rank is worse by more than one standard error, or will be: unless the folds that
    are left differ from no difference at all by more than their noise does.
    """
    deficit = behind(trials, key, best)
    share = len(trials.scores[key]) / len(trials.folds)
    # With no difference on the folds that are left, the deficit falls to this share of itself, and
    # its error to the root of it.
    errors = (ONE + DOUBT * math.sqrt(1.0 - share)) / math.sqrt(share)
    return deficit.value > min(CLEARLY, errors) * deficit.error


def _score(trials: Trials, keys: Sequence[Key], folds: Iterable[int]) -> None:
    """Score candidates on some folds: a fold of a loss at a time, ranks downwards, since fits may
    start from those of higher ranks; losses that start from models of others come after them.
    """
    wanted = list(folds)

    def fold(candidate: Candidate, k: int) -> None:
        for _, rank in sorted((key for key in keys if key[0] == candidate), key=_rank)[::-1]:
            trials.score(candidate, rank, k)

    for stage in stages(list(dict.fromkeys(candidate for candidate, _ in keys))):
        trials.side_by_side([partial(fold, c, k) for k in wanted for c in stage])
