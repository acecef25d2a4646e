"""Judges what a solver had, after its clock has stopped: loss, error, and components missed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from smartcpd import metrics
from smartcpd._app.paper.contenders import Factors, Snapshot, Task
from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._fitting.model import CPModel

EXACT_CELLS = 20_000_000
"""Losses on the way are exact for dense tensors up to this size, a solver's own estimate above."""


class Judgement(NamedTuple):
    """The mean loss over all cells, the error of the factors and the number of true components that
    are not among those found; NaN where it cannot be told.
    """

    loss: float
    mse: float
    missed: float


def judged(task: Task, shot: Snapshot) -> Judgement:
    loss = shot.loss
    if shot.factors is None:
        return Judgement(loss, math.nan, math.nan)
    if task.n_cells <= EXACT_CELLS or not task.is_dense or np.isnan(loss):
        loss = CPModel(shot.factors, None, task.loss).loss(task.X)
    if task.truth is None:
        return Judgement(loss, math.nan, math.nan)
    mse = metrics.factor_mse(shot.factors, task.truth)
    return Judgement(loss, mse, n_missed(shot.factors, task.truth))


def n_missed(found: Factors, truth: Factors) -> int:
    """Return how many true components were missed.

    Components are paired with one permutation for all modes. A true component is missed if its
    partner is farther away than half the distance at which true components are from each other, by
    the squared distance of unit columns, mean over modes.
    """
    distances = 2.0 - 2.0 * np.abs(mode_cosines(found, truth)).mean(axis=0)
    i, j = best_pairs(2.0 - distances)
    apart = 2.0 - 2.0 * np.abs(mode_cosines(truth, truth)).mean(axis=0)
    others = ~np.eye(len(apart), dtype=bool)
    if not others.any():
        return int((distances[i, j] > 0.5).sum())
    return int((distances[i, j] > 0.5 * np.median(apart[others])).sum())
