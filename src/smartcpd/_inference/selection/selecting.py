"""`select` finds out which rank and which loss describe a tensor."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from smartcpd._common.parameters import check_integer
from smartcpd._data.labelled import taken_off
from smartcpd._data.storage import InMemory
from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.candidates import (
    Candidate,
    candidates_of,
    differs_from,
    stages,
)
from smartcpd._inference.selection.cross_validation import check_problem, opened
from smartcpd._inference.selection.narrowing import chosen
from smartcpd._inference.selection.penalties import with_penalty
from smartcpd._inference.selection.result import Replication, Selection, rows_of
from smartcpd._inference.selection.rule import Key, contenders, top_of, walk, walk_near
from smartcpd._inference.selection.training import Fitted
from smartcpd._inference.selection.trials import TRIAL, Trials
from smartcpd._inference.selection.wording import AGREE
from smartcpd._objectives.parameter import unlikelihood
from smartcpd.errors import InvalidParameterError
from smartcpd.metrics import core_consistency, factor_match_score
from smartcpd.metrics.core_consistency import applies

LOG = logging.getLogger("smartcpd")


def select(
    X: Any,
    ranks: Iterable[int] = range(1, 21),
    losses: Any = "auto",
    *,
    cv: int = 5,
    holdout: str = "cells",
    fiber_mode: int | str = 0,
    n_restarts: int = 3,
    n_jobs: int = -1,
    random_state: Any = None,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
    penalties: Sequence[Any] | None = None,
    progress: bool | str | Callable[[str], Any] = "auto",
    **parameters: Any,
) -> Selection:
    """Find the rank and the loss that predict held-out cells best, or the simplest that do about
    so.

    Ranks are tried upwards on a first fold, each from scratch and from the model of the rank below,
    until three in a row are not better; under "negative-binomial" only near the ranks at which
    "poisson" is good. The best of each loss are fitted to the other folds, which decides about the
    loss. Then the lowest rank is chosen whose held-out log-likelihood is within one standard error
    of the best one's; the error is that of the difference on the same cells. It is looked for by
    halving, so that not every rank is fitted to every fold: ``folds`` of the table says how many.

    Parameters
    ----------
    X : a tensor
        As `SmartCPD` takes it.
    ranks : iterable of int
        Tried in increasing order.
    losses : "auto", a loss, or a list of losses
        The plainest first: it is preferred where several are as good. "auto" compares what suits
        the values: "poisson" and "negative-binomial" with r estimated for counts, "bernoulli-odds"
        and "bernoulli-logit" for yes/no data, "gamma" and "gaussian" for positive numbers.
    cv, holdout, fiber_mode
        How cells are held out, as for `cross_validate`.
    n_restarts : int
        Fits to all of the data from different starts: whether they find the same components. The
        best of them is ``model``. Where they differ, the rank below is fitted as often, too.
    n_jobs : int
        Fits that run at the same time, -1 for as many as there are cores. The result does not
        depend on it.
    random_state : int, Generator or None
        The same seed gives the same bits.
    absent, mask, weights
        As for `SmartCPD.fit`.
    penalties : list, optional
        Choices for ``constraint``, such as ``["ridge(0.01)", "ridge(0.1)"]`` or dicts by mode: with
        the rank and loss that were found, the one is chosen under which held-out cells are most
        likely, and ``model`` is fitted with it.
    progress : bool, "auto" or callable
        Whether a line is written for each fit; "auto" does so on a terminal. A function is called
        with the line.
    **parameters
        Everything else that `SmartCPD` takes.

    Returns
    -------
    Selection
        ``rank``, ``loss``, ``model``, ``recommendation``, ``table``; print it.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> smartcpd.select(X, [1, 2], "poisson", cv=2, max_epochs=10, random_state=0).rank
    1
    """
    began = time.perf_counter()
    wanted = _checked_ranks(ranks)
    check_integer("n_restarts", n_restarts, at_least=1)
    trials, storage = opened(
        X,
        cv=cv,
        holdout=holdout,
        fiber_mode=fiber_mode,
        n_jobs=n_jobs,
        random_state=random_state,
        absent=absent,
        mask=mask,
        weights=weights,
        parameters=parameters,
    )
    trials.candidates = candidates_of(losses, storage)
    for candidate in trials.candidates:
        check_problem(storage, wanted[0], candidate, parameters)
    trials.tell = _teller(progress)
    tried = _walked(trials, wanted)
    left = contenders(trials, tried)
    choice = chosen(trials, left)
    again = {choice.key: _replicated(trials, storage, choice.key, n_restarts, chosen=True)}
    match = again[choice.key].match
    below = max(
        (key for key in left[choice.key[0]] if key[1] < choice.key[1]),
        key=lambda key: key[1],
        default=None,
    )
    if match is not None and match < AGREE and below is not None:
        again[below] = _replicated(trials, storage, below, n_restarts, chosen=False)
    modes = taken_off(X)[1]
    found = Selection(
        rank=choice.key[1],
        model=_labelled(again[choice.key].best, modes),
        rows=rows_of(trials, tried, choice, again),
        limit=wanted[-1],
        left_out=tuple(str(c) for c in trials.candidates if c not in tried),
        cv=int(cv),
        holdout=holdout,
        seconds=time.perf_counter() - began,
    )
    if penalties is None:
        return found
    options = {"cv": cv, "holdout": holdout, "fiber_mode": fiber_mode, "n_jobs": n_jobs}
    return with_penalty(
        found, storage, modes, penalties, options, parameters, trials.entropy, trials.tell
    )


def _checked_ranks(ranks: Iterable[int]) -> list[int]:
    given: list[Any] = list(ranks) if isinstance(ranks, Iterable) else [ranks]
    if not given:
        raise InvalidParameterError("ranks is empty; give at least one, such as range(1, 21).")
    for rank in given:
        check_integer("Each of ranks", rank, at_least=1)
    return sorted({int(rank) for rank in given})


def _teller(progress: bool | str | Callable[[str], Any]) -> Callable[[str], Any]:
    if callable(progress):
        return progress
    wanted = sys.stderr.isatty() if progress == "auto" else bool(progress)
    # Python writes warnings to standard error where a program has not said what to do with logs.
    level = logging.WARNING if wanted else logging.INFO

    def tell(sentence: str) -> None:
        LOG.log(level, "smartcpd: %s", sentence)

    return tell


def _walked(trials: Trials, ranks: list[int]) -> dict[Candidate, list[int]]:
    """Return the ranks of each loss that were tried on the first fold."""
    tried: dict[Candidate, list[int]] = {}
    for stage in stages(trials.candidates):
        worthwhile = [c for c in stage if c.plain not in tried or _differs(trials, c, tried)]
        walks = [partial(_walk, trials, candidate, ranks, tried) for candidate in worthwhile]
        tried |= zip(worthwhile, trials.side_by_side(walks), strict=True)
    return tried


def _walk(
    trials: Trials, candidate: Candidate, ranks: list[int], tried: dict[Candidate, list[int]]
) -> list[int]:
    plain = candidate.plain
    if plain is None or plain not in tried:
        return walk(trials, candidate, ranks)
    return walk_near(trials, candidate, ranks, [(plain, rank) for rank in tried[plain]])


def _differs(trials: Trials, candidate: Candidate, tried: dict[Candidate, list[int]]) -> bool:
    """Whether a loss can be told from its plain relative, where that is at its best."""
    plain = candidate.plain
    assert plain is not None
    _, rank = top_of(trials, [(plain, rank) for rank in tried[plain]])
    score = trials.scores[plain, rank][0]
    differs = differs_from(score.model, score.fold.training, candidate)
    if not differs:
        trials.tell(f"{candidate} is left out: nothing tells these counts from {plain} ones")
    return differs


def _replicated(
    trials: Trials, storage: InMemory, key: Key, n_restarts: int, chosen: bool
) -> Replication:
    """Fit all of the data several times, and say whether the fits agree.

    The first of those that a model is chosen from is a search like any other fit's; the others only
    show where a single run leads, and one that leads further is finished.
    """
    n_folds = len(trials.folds)
    tasks = [
        partial(
            trials.fit, storage, *key, n_folds + start, **({} if chosen and not start else TRIAL)
        )
        for start in range(n_restarts)
    ]
    fits: list[Fitted] = trials.side_by_side(tasks)
    best, *others = sorted(fits, key=lambda fit: _cost(fit, key[0], storage))
    matches = [factor_match_score(best.model, fit.model) for fit in others]
    if chosen and best is not fits[0]:
        best = trials.fit(storage, *key, n_folds + n_restarts, kin=best.model)
    consistency = None
    if applies(best.model.loss_function, best.model, storage):
        consistency = core_consistency(best.model, storage)
    return Replication(best.model, float(np.mean(matches)) if matches else None, consistency)


def _cost(fit: Fitted, candidate: Candidate, storage: InMemory) -> float:
    """Return what the best of several fits has least of."""
    if not candidate.loss.is_open:
        return fit.loss
    assert fit.model.loss_function is not None
    return unlikelihood(storage, fit.model.loss_function, fit.loss)


def _labelled(model: Any, modes: Any) -> Any:
    return CPModel(model.factors, model.weights, model.loss_function, modes)
