"""Scores of held-out cells, and differences between two candidates on the same cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smartcpd._fitting.model import CPModel
from smartcpd._inference.selection.folds import Fold
from smartcpd._inference.selection.likelihood import fitted_scale, has_density
from smartcpd._inference.selection.training import Fitted


class Mean(NamedTuple):
    """A mean over held-out cells and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class FoldScore:
    """The scores of the cells of a fold under a model that was fitted without it."""

    fold: Fold
    fit: Fitted
    dispersion: float
    deviance: np.ndarray
    log_likelihood: np.ndarray | None
    """The log-likelihoods; None where the loss gives values like these no probability."""

    @property
    def model(self) -> CPModel:
        return self.fit.model

    @property
    def score(self) -> np.ndarray:
        """The figure that candidates are compared by; higher is better."""
        return -0.5 * self.deviance if self.log_likelihood is None else self.log_likelihood


def scored(fold: Fold, fit: Fitted) -> FoldScore:
    """Score a fit to the training part of a fold."""
    model, loss = fit.model, fit.model.loss_function
    assert loss is not None
    m = model.values(tuple(fold.places)).astype(np.float64)
    deviance = loss.deviance(fold.x, m)
    if not has_density(loss, fold.training):
        return FoldScore(fold, fit, 1.0, deviance, None)
    scale = fitted_scale(model, fold.training)
    return FoldScore(fold, fit, scale, deviance, loss.log_likelihood(fold.x, m, scale))


def mean_over(parts: Sequence[np.ndarray], folds: Sequence[Fold]) -> Mean:
    """Return the weighted mean over the cells of some folds.

    Two errors can be told from the data: that of the cells, which are independent given the models,
    and that of the folds, whose models differ as well. The second is noisy with a few folds, so the
    larger of the two is taken.
    """
    values = np.concatenate(parts)
    weights = np.concatenate([fold.weights for fold in folds])
    total = float(weights.sum())
    mean = float(weights @ values) / total
    error = math.sqrt(float(np.square(weights * (values - mean)).sum())) / total
    if len(folds) > 2:
        shares = np.array([fold.weights.sum() for fold in folds]) / total
        means = [float(f.weights @ p / f.weights.sum()) for p, f in zip(parts, folds, strict=True)]
        spread = np.square(shares * (np.array(means) - mean)).sum()
        error = max(error, math.sqrt(spread * len(folds) / (len(folds) - 1)))
    return Mean(mean, error)


def difference(one: dict[int, FoldScore], other: dict[int, FoldScore]) -> Mean:
    """Return by how much the score of one candidate exceeds that of another, on the folds of
    both.
    """
    common = sorted(one.keys() & other.keys())
    parts = [one[k].score - other[k].score for k in common]
    return mean_over(parts, [one[k].fold for k in common])


def summed(scores: Iterable[FoldScore], name: str) -> Mean:
    """Return the mean of one of the figures over all folds that were scored; NaN if there is
    none.
    """
    found = list(scores)
    parts = [getattr(score, name) for score in found]
    if any(part is None for part in parts):
        return Mean(math.nan, math.nan)
    return mean_over(parts, [score.fold for score in found])
