"""The parameter of a loss by maximum likelihood, given what a model expects in every cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from smartcpd._common.distinct import distinct
from smartcpd._common.stacked import stack
from smartcpd._data.storage import InMemory
from smartcpd._objectives.backgrounds import HotCells
from smartcpd._objectives.base import objective_of
from smartcpd._objectives.sparse import SparseObjective
from smartcpd.losses import Loss

LOWEST, HIGHEST = 1e-3, 1e3
"""The bounds of a parameter; the upper one counts times the mean of the data if that is above 1.
Beyond it, nothing tells the loss from its limit."""
AT_BOUND = 0.5
"""The share of the highest parameter from which on it is taken for infinite."""
ROUGH, EXACT = 0.3, 3e-3
"""Relative errors of a first search for a parameter, and of the last."""
NEARBY = 0.4
"""How far a search goes on either side of a guess, in terms of logarithms."""
MOST_MOVES = 20
BENT_OVER = 0.1
"""The change of the logarithm over which the likelihood's curvature is measured."""


class Parameter(NamedTuple):
    """A loss with the parameter that makes data most likely."""

    loss: Loss
    value: float
    error: float
    """The standard error of the parameter, relative to it."""
    gain: float
    """How much less likely the data is, in nats, with the guess that it was looked for near."""
    is_infinite: bool
    """Whether nothing tells the data from that of the loss's limit."""


def rescaled(factors: Sequence[np.ndarray], before: Loss, after: Loss) -> list[np.ndarray]:
    """Factors of the same means under another loss."""
    assert before.mean_scale is not None
    assert after.mean_scale is not None
    scale = (before.mean_scale / after.mean_scale) ** (1.0 / len(factors))
    return [scale * np.asarray(A, np.float64) for A in factors]


def likeliest(
    wanted: Loss,
    storage: InMemory,
    factors: Sequence[np.ndarray],
    under: Loss,
    n_threads: int = 1,
    guess: float | None = None,
) -> Parameter:
    """The parameter of the ``wanted`` loss under which data is most likely to have the means that
    these factors have ``under`` a loss. It is looked for near a ``guess`` first.
    """
    profile = _Profile(wanted, storage, factors, under, n_threads)
    highest = HIGHEST * max(1.0, storage.mean())
    at = None if guess is None else math.log(guess)
    if at is None:
        at = profile.lowest(math.log(LOWEST), math.log(highest), ROUGH)
    for _ in range(MOST_MOVES):
        middle, least = at, profile.near(at - NEARBY)
        at = least.lowest(at - NEARBY, min(at + NEARBY, math.log(highest)), EXACT)
        if abs(at - middle) < 0.9 * NEARBY:
            break
    cost = least.cost(at)
    gain = math.inf if guess is None else least.n * (least.cost(math.log(guess)) - cost)
    sides = least.cost(at - BENT_OVER) + least.cost(at + BENT_OVER)
    bend = (sides - 2.0 * cost) / BENT_OVER**2
    error = 1.0 / math.sqrt(least.n * bend) if bend > 0 else math.inf
    value = math.exp(at)
    return Parameter(wanted.with_parameter(value), value, error, gain, value > AT_BOUND * highest)


def unlikelihood(storage: InMemory, loss: Loss, mean: float) -> float:
    """Return minus the mean log-likelihood of a cell, given the mean loss: losses that differ in
    their parameter compare by nothing less.
    """
    kinds, counts, n = _tallied(storage)
    return float(mean - counts @ loss.log_base(kinds, 1.0) / n)


class _Profile:
    """Minus the mean log-likelihood of a cell, as a function of the parameter's logarithm."""

    def __init__(
        self,
        wanted: Loss,
        storage: InMemory,
        factors: Sequence[np.ndarray],
        under: Loss,
        n_threads: int,
    ) -> None:
        self.wanted, self.storage, self.n_threads = wanted, storage, n_threads
        self.factors, self.under = factors, under
        self.kinds, self.counts, self.n = _tallied(storage)
        self.large: HotCells | None = None

    def near(self, log_value: float) -> _Profile:
        """The same profile, quicker and without leaps for this parameter and larger ones: the cells
        that matter to the zeros of sparse data are looked up once, where they are most.
        """
        found = copy(self)
        loss, A = self._at(log_value - 2 * BENT_OVER)
        objective = objective_of(self.storage, loss, self.n_threads)
        background = getattr(objective.with_background(A), "background", None)
        found.large = background if isinstance(background, HotCells) else None
        return found

    def cost(self, log_value: float) -> float:
        loss, A = self._at(log_value)
        objective = objective_of(self.storage, loss, self.n_threads)
        if self.large is not None and isinstance(objective, SparseObjective):
            objective = replace(objective, background=replace(self.large, loss=loss))
        else:
            objective = objective.with_background(A)
        base = self.counts @ loss.log_base(self.kinds, 1.0) / self.n
        return float(objective.estimate(A).loss - base)

    def lowest(self, low: float, high: float, exact: float) -> float:
        from scipy.optimize import minimize_scalar

        options = {"xatol": exact}
        return float(
            minimize_scalar(self.cost, bounds=(low, high), method="bounded", options=options).x
        )

    def _at(self, log_value: float) -> tuple[Loss, np.ndarray]:
        loss = self.wanted.with_parameter(math.exp(log_value))
        return loss, stack(rescaled(self.factors, self.under, loss))


def _tallied(storage: InMemory) -> tuple[np.ndarray, np.ndarray, float]:
    """The values of the observed cells, how often each occurs, and how many cells there are."""
    kinds: np.ndarray = np.zeros(1)
    counts: np.ndarray = np.zeros(1)
    n = float(storage.n_observed)
    for x, w in storage.weighted_values():
        values = np.concatenate([kinds, np.ravel(x)])
        weights = np.concatenate([counts, np.ones(np.size(x)) if w is None else np.ravel(w)])
        kinds, where = distinct(values)
        counts = np.bincount(where, weights=weights).astype(np.float64)
    counts[kinds == 0] += n - counts.sum()
    return kinds, counts, n
