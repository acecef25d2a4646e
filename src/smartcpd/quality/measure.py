"""All figures about a fit, from one pass over the cells."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common import threads
from smartcpd._data.storage import Dense, SparseStorage, as_storage
from smartcpd._data.tiled import Blocks
from smartcpd._fitting.model import CPModel
from smartcpd._inference.excerpt import excerpt
from smartcpd._objectives import mean_loss
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss
from smartcpd.quality.calibration import Calibration
from smartcpd.quality.deviance import best_constant
from smartcpd.quality.hot_spots import Cells, Slices
from smartcpd.quality.noise import data_name, has_scale
from smartcpd.quality.reading import Batch, Reading
from smartcpd.quality.result import Quality

CONSTANT_FROM = 1 << 18
"""Cells of which the best constant is found; its loss is then taken over all."""
SIMULATED = 1 << 17
EDGES_FROM = 1 << 16
TINY = 1e-300


def measure(model: CPModel, X: Any, absent: str = "zero") -> Quality:
    """How well a model describes data.

    Dense arrays of up to 4 million cells are read whole, of larger ones a sample is. Of sparse
    tensors every nonzero is read; beyond 4 million cells, the zeros come from closed forms and a
    sample. The sample is always the same.

    Parameters
    ----------
    model : CPModel
        With the loss that it was fitted under.
    X : array, SparseTensor or LabelledTensor
        The data, of the model's shape.
    absent : {"zero", "unobserved"}
        What cells mean that sparse data does not store, as for `SmartCPD`.

    Returns
    -------
    Quality

    Examples
    --------
    >>> from smartcpd import CPModel, datasets
    >>> from smartcpd.quality import measure
    >>> X, factors = datasets.count((20, 20, 20), rank=2, random_state=0)
    >>> quality = measure(CPModel(factors, loss_function="poisson"), X)
    >>> 0.8 < quality.scatter < 1.2
    True
    """
    if model.loss_function is None:
        raise InvalidParameterError(
            "This model has no loss. Load it with CPModel.load(path, loss=...)."
        )
    loss = model.loss_function
    storage = as_storage(X, absent)
    if isinstance(storage, Blocks):
        model, X, _ = excerpt(model, storage)
        storage = X
    estimate = mean_loss(X, model, absent)  # checks the data as well
    factors = [A.astype(np.float64) for A in model.distribute().factors]
    reading = Reading(storage, factors, loss, seed=0)
    freedom = model.rank * (sum(model.shape) - model.order + 1)
    with threads.limited_to(threads.resolve(None)):
        tally = Tally(reading, loss)
        for batch in reading.batches():
            tally.add(batch)
        levels = _levels(tally, estimate.loss)
    degrees = max(storage.n_observed - freedom, 1)
    scale = 1.0 if has_scale(loss) else max(tally.deviance / degrees, TINY)
    estimated = tally.knows_variance and not has_scale(loss)
    noise = max(tally.slices.scatter, TINY) if estimated else 1.0
    counted = data_name(loss) == "counts" and tally.knows_variance
    return Quality(
        loss=str(loss),
        data=data_name(loss),
        cells=round(storage.n_observed),
        nonzeros=levels.nonzeros,
        mean_loss=estimate.loss,
        mean_loss_error=estimate.error,
        constant_loss=levels.constant,
        saturated_loss=levels.saturated,
        deviance_explained=levels.explained,
        deviance_attainable=levels.attainable,
        dispersion=tally.chi_squared / degrees if counted else None,
        scatter=tally.slices.scatter if counted else None,
        calibration=tally.calibration.bins(noise),
        hot_cells=tally.cells.largest(scale),
        hot_slices=tally.slices.worst(),
        sampled_cells=reading.sampled_cells,
    )


class Tally:
    """Everything that is summed up on the way through the cells."""

    def __init__(self, reading: Reading, loss: Loss) -> None:
        self.reading = reading
        self.loss = loss
        self.knows_variance = loss.knows("variance")
        self.chi_squared = 0.0
        self.deviance = 0.0
        m, weights = reading.sample(EDGES_FROM)
        self.calibration = Calibration(loss, _mean_of(loss, m), weights)
        self.cells = Cells()
        self.slices = Slices(reading.storage.shape, loss)
        self._values: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, batch: Batch) -> None:
        if not batch.x.size:
            return
        loss = self.loss
        mean = _mean_of(loss, batch.m)
        squares = (batch.x - mean) ** 2
        kinds, where = np.unique(batch.x, return_inverse=True)
        least = loss.saturated(kinds)[where]
        deviance = np.maximum(2.0 * (loss.values_at(batch.x, batch.m) - least), 0.0)
        self._values.append((kinds, np.bincount(where, weights=batch.weight)))
        self.deviance += float(batch.weight @ deviance)
        self.cells.add(batch, mean, deviance)
        if self.knows_variance:
            v = loss.variance(mean)
            self.chi_squared += float(batch.weight @ (squares / v))
            self.calibration.add(batch.x, mean, v, batch.weight)
            self.slices.add(batch, mean, squares, v)
        else:
            # The residuals themselves say how exact a mean is, and the loss how bad they are.
            self.calibration.add(batch.x, mean, squares, batch.weight)
            self.slices.add(batch, mean, deviance, np.ones_like(mean))

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """The values of the data, and in how many cells each was seen."""
        values, counts = (np.concatenate(parts) for parts in zip(*self._values, strict=True))
        kinds, where = np.unique(values, return_inverse=True)
        counts = np.bincount(where, weights=counts)
        storage = self.reading.storage
        exact = isinstance(storage, SparseStorage) and not storage.weighted
        if exact and not self.reading.whole:
            assert isinstance(storage, SparseStorage)
            # How many zeros there are is known; the sample only said it about.
            counts[kinds == 0] = storage.n_cells - storage.nnz
        return kinds, counts


class Levels(NamedTuple):
    """What a model's loss is compared with."""

    nonzeros: int
    constant: float
    saturated: float
    explained: float | None
    attainable: float | None


def _levels(tally: Tally, own_loss: float) -> Levels:
    reading, loss = tally.reading, tally.loss
    values, counts = tally.table()
    saturated = _mean(loss.saturated(values), counts)
    constant = _constant_loss(loss, values, counts)
    if isinstance(reading.storage, Dense) and reading.sampled_cells:
        # On a sample of a dense array, all losses must be those of the sample.
        own_loss = saturated + 0.5 * tally.deviance / float(counts.sum())
    most = 2.0 * (constant - saturated)
    explained = _explained(loss, values, 2.0 * (own_loss - saturated), most)
    attainable = None
    if explained is not None and has_scale(loss):
        expected = _expected_deviance(reading, loss)
        attainable = None if expected is None else 1.0 - expected / most
    nonzeros = round(float(counts[values != 0].sum()))
    return Levels(nonzeros, constant, saturated, explained, attainable)


def _constant_loss(loss: Loss, values: np.ndarray, counts: np.ndarray) -> float:
    """The mean loss of the best constant model."""
    chosen = slice(None, None, max(1, values.size // CONSTANT_FROM))
    m = best_constant(loss, values[chosen], counts[chosen])
    return _mean(loss.values_at(values, np.full(values.size, m)), counts)


def _explained(
    loss: Loss, values: np.ndarray, deviance: float, constant_deviance: float
) -> float | None:
    """None where the loss goes to infinity at the data, or where there is nothing to explain."""
    if not loss.allows_zeros and (values == 0).any():
        return None
    if not (math.isfinite(deviance) and math.isfinite(constant_deviance)):
        return None
    return 1.0 - deviance / constant_deviance if constant_deviance > TINY else None


def _expected_deviance(reading: Reading, loss: Loss) -> float | None:
    """The mean deviance of this model on data drawn from it; None where none can be drawn, or where
    means are astronomic."""
    if not loss.knows("simulate"):
        return None
    m, weights = reading.sample(SIMULATED)
    try:
        x = np.asarray(loss.simulate(m, reading.rng), dtype=np.float64)
    except ValueError:
        return None
    deviance = 2.0 * (loss.values_at(x, m) - loss.saturated(x))
    return float(weights @ deviance) / reading.storage.n_observed


def _mean_of(loss: Loss, m: np.ndarray) -> np.ndarray:
    return np.asarray(loss.mean(m, loss.params), dtype=np.float64)


def _mean(losses: np.ndarray, counts: np.ndarray) -> float:
    return float(counts @ losses / counts.sum())
