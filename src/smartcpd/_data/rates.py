"""Data with an exposure, as rates: each cell divided by its exposure, and weighted by it."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from smartcpd import losses
from smartcpd._data.exposure import Exposure
from smartcpd._data.labelled import LabelledTensor, taken_off
from smartcpd._data.opening import as_storage, in_memory
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows
from smartcpd.errors import IncompatibleError, InvalidDataError
from smartcpd.losses import Loss

USUAL = (1e-3, 1e3)
"""Exposures of about this size are taken as they are; others are divided by a power of two, since
tiny rates come too close to the eps inside losses."""


class Rates(NamedTuple):
    """Rates with their weights, and how losses of them become losses of the data."""

    storage: Dense | SparseTensor
    unit: float
    """The power of two that exposures were divided by: rates are as many times too large."""
    factor: float
    shift: float
    """The mean loss of the data is that of the rates times ``factor``, plus ``shift``."""


def rates(
    X: Any,
    exposure: Any,
    loss: Any,
    *,
    absent: str = "zero",
    mask: Any = None,
    weights: Any = None,
) -> Any:
    """Return data with an exposure as rates, with the weights that make them equivalent.

    Fits, intervals, `select` and all else that takes weighted data takes the result; a model of it
    is a model of rates.

    Parameters
    ----------
    X : array, SparseTensor or LabelledTensor
        The data.
    exposure : array, SparseTensor, or dict from modes to vectors
        How much opportunity every cell had; a cell with 0 was not observed. Of a sparse tensor,
        cells that it does not store have 0.
    loss : str or Loss
        One for which rates and weights stand for the data: poisson (weights e), gaussian (e²),
        gamma (1), beta(b) (e^b) and others.
    absent, mask, weights
        As for `SmartCPD.fit`.

    Returns
    -------
    Storage or LabelledTensor
        Data that can be passed wherever a tensor can.

    Examples
    --------
    >>> import numpy as np
    >>> import smartcpd
    >>> X = np.array([[2, 4], [3, 6]])
    >>> data = smartcpd.rates(X, np.array([[1.0, 2.0], [1.0, 3.0]]), "poisson")
    >>> data.array
    array([[2., 2.],
           [3., 2.]])
    """
    tensor, modes = taken_off(X)
    storage = in_memory(as_storage(tensor, absent, mask, weights), "rates")
    found = Exposure.of(exposure, storage.shape, modes)
    made = rates_of(storage, found, losses.get(loss), in_units=False).storage
    return made if modes is None else LabelledTensor(made, modes)


def rates_of(
    storage: Dense | SparseTensor, exposure: Exposure, loss: Loss, in_units: bool = True
) -> Rates:
    """Return the rates of a storage, refused where a loss has no weights for them."""
    power = loss.exposure_power
    if power is None:
        raise IncompatibleError(
            f"Under loss '{loss}', no weights make rates equivalent to data with an exposure of "
            "every cell. Give an exposure of modes, such as {0: people}, or use loss 'poisson', "
            "'gaussian' or 'gamma'."
        )
    return _rates(storage, exposure, loss, power, in_units)


@singledispatch
def _rates(storage: Storage, exposure: Exposure, loss: Loss, power: float, in_units: bool) -> Rates:
    raise TypeError(f"{type(storage).__name__} is not in memory.")


@_rates.register
def _(storage: Dense, exposure: Exposure, loss: Loss, power: float, in_units: bool) -> Rates:
    e = exposure.full(storage.shape)
    own = np.ones(storage.shape) if storage.weights is None else storage.weights
    _check_unseen(storage, e, own)
    seen = (e > 0) & (own > 0)
    unit = _unit(e[seen]) if in_units else 1.0
    x, w = np.zeros(storage.shape), np.zeros(storage.shape)
    np.divide(storage.array, e / unit, out=x, where=seen)
    x[~seen] = 1.0  # every loss accepts 1
    w[seen] = own[seen] * (e[seen] / unit) ** power
    even = float(w.min()) == float(w.max())
    made = Dense(x, None if even else _as_many(w, seen))
    factor, shift = _back(storage.array[seen], e[seen] / unit, own[seen], x[seen], w[seen], loss)
    return Rates(made, unit, factor, shift)


@_rates.register
def _(storage: SparseTensor, exposure: Exposure, loss: Loss, power: float, in_units: bool) -> Rates:
    if storage.absent == "unobserved":
        columns, values = storage.indices, storage.values
    elif isinstance(exposure.cells, SparseTensor):
        # What has an exposure was observed, whether anything happened there or not.
        columns = exposure.cells.indices
        values = np.zeros(len(columns[0]))
        storage.read_cells(stacked_rows(storage.shape, list(columns)), values)
        _check_events(storage, exposure)
    else:
        return _rates(Dense.of(storage.to_dense()), exposure, loss, power, in_units)
    if storage.weights is not None or storage.n_missing:
        raise IncompatibleError(
            "A sparse tensor with weights or missing cells has no exposure of every cell beside. "
            "Multiply the weights, and leave missing cells out of the exposure."
        )
    e = exposure.at(columns)
    if storage.absent == "unobserved" and (e == 0).any():
        _refuse(columns, values, int(np.flatnonzero(e == 0)[0]))
    unit = _unit(e) if in_units else 1.0
    x, w = values / (e / unit), (e / unit) ** power
    made = SparseTensor(tuple(columns), x, storage.shape, "unobserved", _as_many(w, w > 0))
    return Rates(made, unit, *_back(values, e / unit, np.ones(e.size), x, w, loss))


def _as_many(w: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Weights with a mean of 1: they say how certain cells are, not that there are more of them."""
    return w / float(w[seen].mean())


def _back(
    x: np.ndarray, e: np.ndarray, own: np.ndarray, y: np.ndarray, w: np.ndarray, loss: Loss
) -> tuple[float, float]:
    """How a mean loss of rates becomes that of the data: what they differ by is the same for all
    models, so that a model of 1 tells.
    """
    total = float(own.sum())
    of_data = loss.values_at(x.astype(np.float64), e)
    apart = own * of_data - w * loss.values_at(y, np.ones(y.size))
    return float(w.sum()) / total, float(apart.sum()) / total


@singledispatch
def without_unexposed(storage: Any, exposure: Exposure) -> Any:
    """Return a storage of which cells without exposure are missing; refuse data in such cells.

    Of sparse data and of data on disk they stay: they are zeros, which rows of 0 explain.
    """
    return storage


@without_unexposed.register
def _(storage: SparseTensor, exposure: Exposure) -> SparseTensor:
    _check_events(storage, exposure)
    return storage


@without_unexposed.register
def _(storage: Dense, exposure: Exposure) -> Dense:
    if not any(v is not None and (v == 0).any() for v in exposure.vectors):
        return storage
    e = exposure.full(storage.shape)
    own = np.ones(storage.shape) if storage.weights is None else storage.weights
    _check_unseen(storage, e, own)
    return Dense(storage.array, own * (e > 0))


def _check_unseen(storage: Dense, e: np.ndarray, own: np.ndarray) -> None:
    wrong = (e == 0) & (own > 0) & (storage.array != 0)
    if wrong.any():
        cell = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise _nothing_could(cell, float(storage.array[cell]))


def _check_events(storage: SparseTensor, exposure: Exposure) -> None:
    wrong = np.flatnonzero((exposure.at(storage.indices) == 0) & (storage.values != 0))
    if wrong.size:
        _refuse(storage.indices, storage.values, int(wrong[0]))


def _refuse(columns: Any, values: np.ndarray, place: int) -> None:
    cell = tuple(int(column[place]) for column in columns)
    raise _nothing_could(cell, float(values[place]))


def _nothing_could(cell: tuple[int, ...], value: float) -> InvalidDataError:
    return InvalidDataError(
        f"X is {value:g} in cell {cell}, where the exposure is 0: nothing can happen without "
        "opportunity. Correct the exposure, or make the cell 0 or missing."
    )


def _unit(e: np.ndarray) -> float:
    """The power of two that brings exposures near 1, if they are far from it."""
    middle = float(np.exp(np.mean(np.log(e))))
    return 1.0 if USUAL[0] <= middle <= USUAL[1] else float(2.0 ** round(np.log2(middle)))
