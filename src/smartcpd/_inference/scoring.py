"""Scores of what was observed under a model: slice by slice, and cell by cell."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._fitting.model import CPModel
from smartcpd._inference import dispersion as dispersions
from smartcpd._inference.likelihood import slice_log_likelihoods
from smartcpd._inference.streaming.transform import checked_mode
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
    model, loss = model.with_exposure(), _loss(model)
    place = checked_mode(model, mode)
    storage = _storage(model, loss, X, absent, mask, weights)
    spread = _dispersion(model, storage, dispersion)
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
    model, loss = model.with_exposure(), _loss(model)
    if indices is not None:
        if mask is not None:
            raise InvalidParameterError(
                "mask= goes with a whole tensor; leave out of indices what was not observed."
            )
        return loss.tail_probability(X, model.values(indices), dispersion)
    storage = _storage(model, loss, X, absent, mask, None)
    spread = _dispersion(model, storage, dispersion)
    return _tail_probabilities(storage, model, loss, spread)


@singledispatch
def _tail_probabilities(
    storage: Storage, model: CPModel, loss: Loss, dispersion: float
) -> np.ndarray:
    """How likely values as far out as those stored are; NaN for cells that are missing."""
    raise TypeError(f"{type(storage).__name__} is no storage whose values can be judged.")


@_tail_probabilities.register
def _(storage: SparseTensor, model: CPModel, loss: Loss, dispersion: float) -> np.ndarray:
    return loss.tail_probability(storage.values, model.values(storage.indices), dispersion)


@_tail_probabilities.register
def _(storage: Dense, model: CPModel, loss: Loss, dispersion: float) -> np.ndarray:
    out = np.empty(storage.n_cells)
    for start in range(0, out.size, PIECE):
        ids = np.arange(start, min(start + PIECE, out.size))
        cells = np.unravel_index(ids, storage.shape)
        x = storage.array[cells].astype(np.float64)
        if storage.weights is not None:
            x[storage.weights[cells] == 0] = np.nan
        out[ids] = loss.tail_probability(x, model.values(cells), dispersion)
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


def _dispersion(model: CPModel, storage: Storage, given: float | None) -> float:
    """What the user gave, or an estimate where the loss leaves the size of the noise open."""
    found = dispersions.estimate(model, storage) if given is None else given
    return _loss(model).checked_dispersion(found)


def dispersion(
    model: CPModel, X: Any, absent: str = "zero", mask: Any = None, weights: Any = None
) -> float | None:
    """Estimate how widely data scatters about a model; see `CPModel.dispersion`."""
    return dispersions.estimate(model, as_storage(X, absent, mask, weights))
