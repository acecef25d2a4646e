"""The logarithm of the probability of data under a model.

Of every loss that names a distribution, log p(x | m) = -l(x, m) / dispersion + b(x): what the model
decides is the loss itself, and what the data alone decides is the base b.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd._common import threads
from smartcpd._data.storage import Dense, SparseTensor, Storage
from smartcpd._data.storage.observed import stacked_rows
from smartcpd._inference.surprise import check_dispersion, huber_normaliser, is_built_in
from smartcpd._objectives.slices.sums import observed_per_row, slices_of
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss
from smartcpd.quality.deviance import cell_losses, saturated_losses

if TYPE_CHECKING:
    from smartcpd._fitting.model import CPModel

PIECE = 1 << 18
TINY = np.finfo(float).tiny
MANY_EVENTS = 500
"""From so many expected events on, Tweedie's compound is as good as its saddlepoint."""


def log_base(loss: Loss, x: Any, dispersion: float | None = None) -> np.ndarray:
    """What the data itself adds to the log-likelihood, cell by cell.

    Parameters
    ----------
    loss : Loss
        Any built-in one.
    x : array
        The values that were observed.
    dispersion : float, optional
        As for `smartcpd._inference.surprise.tail_probability`.

    Returns
    -------
    ndarray
        b(x) such that the log-likelihood of a cell is b(x) - l(x, m) / dispersion, with 1 for a
        dispersion that the loss does not leave open. It is exact up to the eps inside the losses,
        but for "beta" beyond 1 (other than 2) and below 0, where it is the saddlepoint
        approximation of Tweedie's distributions.
    """
    base = BASES.get(loss.name) if is_built_in(loss) else None
    if base is None:
        raise InvalidParameterError(
            f"Loss '{loss}' names no distribution, so data has no likelihood under it. "
            f"Losses that do: {', '.join(BASES)}."
        )
    check_dispersion(loss, dispersion)
    values = np.asarray(x, dtype=np.float64)
    return base(loss, values, 1.0 if dispersion is None else float(dispersion))


def slice_log_likelihoods(
    model: CPModel, storage: Storage, mode: int, dispersion: float | None
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
        totals = bases - sums.value / (1.0 if dispersion is None else dispersion)
        return np.where(observed > 0, totals / observed, np.nan)


@singledispatch
def _base_sums(storage: Storage, loss: Loss, mode: int, dispersion: float | None) -> np.ndarray:
    """The sums of b over the slices of a mode, weighted as the cells are."""
    raise TypeError(f"{type(storage).__name__} is no storage whose slices can be summed.")


@_base_sums.register
def _(storage: SparseTensor, loss: Loss, mode: int, dispersion: float | None) -> np.ndarray:
    own = np.ones(storage.nnz) if storage.weights is None else storage.weights
    base = own * log_base(loss, storage.values, dispersion)
    column = storage.indices[mode]
    stored_sums = np.bincount(column, weights=base, minlength=storage.shape[mode])
    if storage.absent == "unobserved":
        return stored_sums
    # The zeros are all cells that count, less those that are stored.
    stored = np.bincount(column, weights=own, minlength=storage.shape[mode])
    zeros = observed_per_row(storage, mode) - stored
    return stored_sums + zeros * float(log_base(loss, 0.0, dispersion))


@_base_sums.register
def _(storage: Dense, loss: Loss, mode: int, dispersion: float | None) -> np.ndarray:
    sums = np.zeros(storage.shape[mode])
    for start in range(0, storage.n_cells, PIECE):
        cells = np.unravel_index(
            np.arange(start, min(start + PIECE, storage.n_cells)), storage.shape
        )
        x, w = storage.array[cells].astype(np.float64), np.ones(len(cells[0]))
        storage.read_weights(stacked_rows(storage.shape, cells), w)
        seen = w != 0
        base = w[seen] * log_base(loss, x[seen], dispersion)
        sums += np.bincount(cells[mode][seen], weights=base, minlength=sums.size)
    return sums


def _poisson(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    """Amounts that scatter like counts in units of the dispersion are counted in these units."""
    from scipy.special import gammaln

    log_unit = np.log(dispersion)
    return -gammaln(x / dispersion + 1.0) - (x / dispersion + 1.0) * log_unit


def _bernoulli(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    return np.zeros_like(x)


def _negative_binomial(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    from scipy.special import gammaln

    r = loss.params[0]
    return gammaln(x + r) - gammaln(r) - gammaln(x + 1.0)


def _gaussian(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    return np.full_like(x, -0.5 * np.log(2.0 * np.pi * dispersion))


def _rayleigh(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    return np.log(np.maximum(x, TINY)) + np.log(0.5 * np.pi)


def _gamma(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    from scipy.special import gammaln

    shape = 1.0 / dispersion
    constant = shape * np.log(shape) - gammaln(shape)
    return constant + (shape - 1.0) * np.log(np.maximum(x, TINY))


def _huber(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    return np.full_like(x, -np.log(huber_normaliser(loss.params[0], dispersion)))


def _beta(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    beta = loss.params[0]
    special = {0.0: _gamma, 1.0: _poisson, 2.0: _beta_two}
    if beta in special:
        return special[beta](loss, x, dispersion)
    if 0.0 < beta < 1.0:
        return _compound(loss, x, dispersion)
    positive = np.maximum(x, TINY)
    spread = np.log(2.0 * np.pi * dispersion) + (2.0 - beta) * np.log(positive)
    return np.where(x > 0, saturated_losses(loss, positive) / dispersion - 0.5 * spread, 0.0)


def _compound(loss: Loss, x: np.ndarray, scale: float) -> np.ndarray:
    """The series of Dunn and Smyth (2005) for the compound of Poisson and gamma."""
    from scipy import special

    beta = loss.params[0]
    shape = beta / (1.0 - beta)
    kinds, where = np.unique(x, return_inverse=True)
    found = np.zeros_like(kinds)
    events = kinds**beta / (scale * beta)  # near which number the terms are largest
    many = events > MANY_EVENTS
    own = cell_losses(loss, kinds[many], kinds[many]) / scale
    found[many] = own - 0.5 * np.log(2.0 * np.pi * scale * kinds[many] ** (2.0 - beta))
    few = (kinds > 0) & ~many
    log_x = np.log(kinds[few])
    log_z = shape * (log_x - np.log(1.0 - beta)) - (1.0 + shape) * np.log(scale)
    log_z -= np.log(beta)
    most = float(events[few].max(initial=0.0))
    total = np.full(log_x.size, -np.inf)
    for j in range(1, int(most + 12.0 * np.sqrt(most) + 24.0)):
        term = j * log_z - special.gammaln(j + 1.0) - special.gammaln(j * shape)
        total = np.logaddexp(total, term)
    found[few] = total - log_x
    return found[where.reshape(x.shape)]


def _beta_two(loss: Loss, x: np.ndarray, dispersion: float) -> np.ndarray:
    """This loss is the gaussian one but for x² / 2."""
    return _gaussian(loss, x, dispersion) - 0.5 * x**2 / dispersion


BASES: dict[str, Callable[[Loss, np.ndarray, float], np.ndarray]] = {
    "bernoulli-logit": _bernoulli,
    "bernoulli-odds": _bernoulli,
    "beta": _beta,
    "gamma": _gamma,
    "gaussian": _gaussian,
    "huber": _huber,
    "negative-binomial": _negative_binomial,
    "poisson": _poisson,
    "poisson-log": _poisson,
    "rayleigh": _rayleigh,
}
