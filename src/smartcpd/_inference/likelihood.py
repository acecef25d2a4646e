"""The mean log-likelihood of the slices of a tensor under a model."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from smartcpd._common import threads
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows
from smartcpd._fitting.model import CPModel
from smartcpd._objectives.slices.sums import observed_per_row, slices_of
from smartcpd.losses import Loss

PIECE = 1 << 18


def slice_log_likelihoods(
    model: CPModel, storage: Storage, mode: int, dispersion: float
) -> np.ndarray:
    """The mean log-likelihood of the observed cells of each slice; NaN where there is none."""
    loss = model.loss_function
    assert loss is not None
    bases = _base_sums(storage, loss, mode, dispersion)
    factors = [A.astype(np.float64) for A in model.absorb(mode).factors]
    n_threads = threads.resolve(None)
    with threads.limited_to(n_threads):
        sums = slices_of(storage, loss, factors, mode, n_threads).at(factors[mode])
    observed = observed_per_row(storage, mode)
    with np.errstate(invalid="ignore", divide="ignore"):
        totals = bases - sums.value / dispersion
        return np.where(observed > 0, totals / observed, np.nan)


@singledispatch
def _base_sums(storage: Storage, loss: Loss, mode: int, dispersion: float) -> np.ndarray:
    """The sums of b over the slices of a mode, weighted as the cells are."""
    raise TypeError(f"{type(storage).__name__} is no storage whose slices can be summed.")


@_base_sums.register
def _(storage: SparseTensor, loss: Loss, mode: int, dispersion: float) -> np.ndarray:
    own = np.ones(storage.nnz) if storage.weights is None else storage.weights
    base = own * loss.log_base(storage.values.astype(np.float64), dispersion)
    column = storage.indices[mode]
    stored_sums = np.bincount(column, weights=base, minlength=storage.shape[mode])
    if storage.absent == "unobserved":
        return stored_sums
    # The zeros are all cells that count, less those that are stored.
    stored = np.bincount(column, weights=own, minlength=storage.shape[mode])
    zeros = observed_per_row(storage, mode) - stored
    return stored_sums + zeros * float(loss.log_base(np.zeros(1), dispersion)[0])


@_base_sums.register
def _(storage: Dense, loss: Loss, mode: int, dispersion: float) -> np.ndarray:
    sums = np.zeros(storage.shape[mode])
    for start in range(0, storage.n_cells, PIECE):
        cells = np.unravel_index(
            np.arange(start, min(start + PIECE, storage.n_cells)), storage.shape
        )
        x, w = storage.array[cells].astype(np.float64), np.ones(len(cells[0]))
        storage.read_weights(stacked_rows(storage.shape, cells), w)
        seen = w != 0
        base = w[seen] * loss.log_base(x[seen], dispersion)
        sums += np.bincount(cells[mode][seen], weights=base, minlength=sums.size)
    return sums
