"""How well a model predicts cells of slices of which it has seen the other cells.

A slice that a model was not fitted to needs a row of its own first. A row that is fitted to the
very cells it is judged by describes them the better, the more components there are, wanted or not;
so each part of the cells is judged by rows that come from the other parts.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from smartcpd._data.labelled import taken_off
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Storage
from smartcpd._data.storage.parts import part_of
from smartcpd._fitting.model import CPModel
from smartcpd._inference.likelihood import slice_log_likelihoods
from smartcpd._inference.selection.likelihood import fitted_scale, has_density
from smartcpd._inference.streaming.transform import NewSlices, with_new_rows
from smartcpd._objectives.slices.sums import observed_per_row

PARTS = 5
"""Into how many parts the cells of each slice are divided."""


def predictive_score(
    model: CPModel,
    X: Any,
    constraint: Any = "auto",
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
) -> float:
    """Return the mean log-likelihood of the cells of X, each slice of mode 0 with a row from other
    cells of its own; see `smartcpd.SmartCPD.score`.
    """
    model = model.with_exposure()
    NewSlices.checked(model, X, 0, constraint, absent, mask, weights)  # may raise an error
    storage = in_memory(as_storage(taken_off(X)[0], absent, mask, weights), "A score")
    model = replace(model, modes=None)
    along = 1 + int(np.argmax(model.shape[1:]))
    size = model.shape[along]
    order = np.random.default_rng(0).permutation(size)
    parts = [np.sort(order[first::PARTS]) for first in range(min(PARTS, size))]
    total = cells = 0.0
    for held in parts:
        # Where every slice is a single cell, nothing can be left out.
        seen = held if size == 1 else np.setdiff1d(order, held)
        known = part_of(storage, {along: seen})
        fitted = _with_rows(_part(model, along, seen), known, constraint, absent)
        judged = _part(model, along, held)
        judged = replace(judged, factors=[fitted.factors[0], *judged.factors[1:]])
        used = np.flatnonzero(observed_per_row(known, 0))
        left = part_of(storage, {along: held, 0: used})
        if left.n_observed > 0:
            total += _sum(_part(judged, 0, used), left, fitted, known)
            cells += left.n_observed
    return total / cells if cells else float("nan")


def _part(model: CPModel, mode: int, rows: np.ndarray) -> CPModel:
    factors = [A[rows] if n == mode else A for n, A in enumerate(model.factors)]
    return replace(model, factors=factors)


def _with_rows(model: CPModel, seen: Storage, constraint: Any, absent: str) -> CPModel:
    """Return the model with rows for slices; those of which no cell was seen are left out later."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No cell was observed", UserWarning)
        return with_new_rows(model, seen, 0, constraint, absent, None, None)


def _sum(model: CPModel, held: Storage, fitted: CPModel, seen: Storage) -> float:
    """Return the log-likelihood of held-out cells; minus the loss where it gives values like these
    no probability.
    """
    loss = model.loss_function
    assert loss is not None
    if not has_density(loss, seen):
        return -model.loss(held) * held.n_observed
    means = slice_log_likelihoods(model, held, 0, fitted_scale(fitted, seen))
    return float(np.nansum(observed_per_row(held, 0) * means))
