"""Scores of what was observed under a model: slice by slice, and cell by cell."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._fitting.model import CPModel
from smartcpd._inference import dispersion as dispersions
from smartcpd._inference.likelihood import log_base, slice_log_likelihoods
from smartcpd._inference.streaming.transform import checked_mode
from smartcpd._inference.surprise import needs_dispersion, tail_probability
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss

PIECE = 1 << 18


def score_samples(
    model: CPModel,
    X: Any,
    mode: int | str = 0,
    *,
    dispersion: float | None = None,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
) -> np.ndarray:
    """Return mean log-likelihoods of slices; see `smartcpd.CPModel.score_samples`."""
    loss = _loss(model)
    place = checked_mode(model, mode)
    storage = _storage(model, loss, X, absent, mask, weights)
    spread = _dispersion(model, storage, dispersion)
    log_base(loss, np.zeros(0), spread)  # a loss without a distribution is refused here
    return slice_log_likelihoods(model, storage, place, spread)


def surprise(
    model: CPModel,
    X: Any,
    indices: Any = None,
    *,
    dispersion: float | None = None,
    absent: str = "zero",
    mask: Any = None,
) -> np.ndarray:
    """Return tail probabilities of cells; see `smartcpd.CPModel.surprise`."""
    loss = _loss(model)
    if indices is not None:
        if mask is not None:
            raise InvalidParameterError(
                "mask= goes with a whole tensor; leave out of indices what was not observed."
            )
        return tail_probability(loss, X, model.values(indices), dispersion)
    storage = _storage(model, loss, X, absent, mask, None)
    spread = _dispersion(model, storage, dispersion)
    return _tail_probabilities(storage, model, loss, spread)


@singledispatch
def _tail_probabilities(
    storage: Storage, model: CPModel, loss: Loss, dispersion: float | None
) -> np.ndarray:
    """How likely values as far out as those stored are; NaN for cells that are missing."""
    raise TypeError(f"{type(storage).__name__} is no storage whose values can be judged.")


@_tail_probabilities.register
def _(storage: SparseTensor, model: CPModel, loss: Loss, dispersion: float | None) -> np.ndarray:
    return tail_probability(loss, storage.values, model.values(storage.indices), dispersion)


@_tail_probabilities.register
def _(storage: Dense, model: CPModel, loss: Loss, dispersion: float | None) -> np.ndarray:
    out = np.empty(storage.n_cells)
    for start in range(0, out.size, PIECE):
        ids = np.arange(start, min(start + PIECE, out.size))
        cells = np.unravel_index(ids, storage.shape)
        x = storage.array[cells].astype(np.float64)
        if storage.weights is not None:
            x[storage.weights[cells] == 0] = np.nan
        out[ids] = tail_probability(loss, x, model.values(cells), dispersion)
    return out.reshape(storage.shape)


def _loss(model: CPModel) -> Loss:
    if model.loss_function is None:
        raise InvalidParameterError(
            "This model has no loss, so it expects nothing of data. Build it with loss_function=..."
        )
    return model.loss_function


def _storage(model: CPModel, loss: Loss, X: Any, absent: str, mask: Any, weights: Any) -> Storage:
    storage = in_memory(as_storage(X, absent, mask, weights), "A score")
    if storage.shape != model.shape:
        raise InvalidParameterError(
            f"X has shape {storage.shape}, the model {model.shape}. They must be the same; "
            "SmartCPD.score_samples takes new slices."
        )
    storage.check(loss)
    return storage


def _dispersion(model: CPModel, storage: Storage, given: float | None) -> float | None:
    """Return what the user gave, or an estimate where the loss leaves the size of the noise
    open.
    """
    if given is not None:
        if not given > 0:
            raise InvalidParameterError(f"dispersion must be a positive number; got {given!r}.")
        return float(given)
    loss = _loss(model)
    open_for_amounts = loss.name in ("poisson", "poisson-log")
    if needs_dispersion(loss) or open_for_amounts:
        return dispersions.estimate(model, storage)
    return None
