"""All figures about a fit, from one pass over the cells."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common import threads
from smartcpd._common.distinct import distinct
from smartcpd._data.opening import as_storage
from smartcpd._data.storage import Storage
from smartcpd._fitting.mean_loss import mean_loss
from smartcpd._fitting.model import CPModel
from smartcpd._inference.excerpt import Excerpt
from smartcpd._objectives import Estimate
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss
from smartcpd.quality.calibration import Calibration
from smartcpd.quality.deviance import best_constant
from smartcpd.quality.hot_spots import SliceSums, WorstCells
from smartcpd.quality.noise import data_name, has_scale
from smartcpd.quality.reading import Judged, Reading, reading_of
from smartcpd.quality.result import Quality

CONSTANT_FROM = 1 << 18
"""Cells of which the best constant is found; its loss is then taken over all."""
SIMULATED = 1 << 17
TINY = 1e-300


def measure(model: CPModel, X: Any, absent: str = "zero") -> Quality:
    """Measure how well a model describes data.

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
    excerpt = Excerpt.of(as_storage(X, absent))
    model = excerpt.rows_of(model.with_exposure())
    known = mean_loss(excerpt.storage, model)  # checks the data as well
    reading = model_reading(model, excerpt.storage)
    tally = QualityTally(reading)
    with threads.limited_to(threads.resolve(None)):
        reading.show_to(tally)
        return placed_in_whole(tally.quality(known), excerpt)


def placed_in_whole(quality: Quality, excerpt: Excerpt) -> Quality:
    """The same figures, with cells and rows where they are in the data that the excerpt is of."""
    if excerpt.rows is None:
        return quality
    cells = (replace(c, index=excerpt.in_whole(c.index)) for c in quality.hot_cells)
    slices = (replace(s, index=int(excerpt.rows[s.mode][s.index])) for s in quality.hot_slices)
    return replace(quality, hot_cells=tuple(cells), hot_slices=tuple(slices))


def model_reading(model: CPModel, storage: Storage) -> Reading:
    """The cells of a storage next to those of a model with a loss."""
    assert model.loss_function is not None
    factors = [A.astype(np.float64) for A in model.distribute().factors]
    return reading_of(storage, factors, model.loss_function, seed=0)


class QualityTally:
    """Everything about the quality of a model that is summed up on the way through the cells."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.loss = loss = reading.loss
        self.knows_variance = loss.knows("variance")
        self.chi_squared = 0.0
        self.deviance = 0.0
        self.calibration = Calibration(loss, *reading.overview)
        self.cells = WorstCells()
        self.slices = SliceSums(reading.storage.shape, loss)
        self._values: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, cells: Judged) -> None:
        """Add some cells."""
        batch, mean, weight = cells.batch, cells.mean, cells.batch.weight
        squares = (batch.x - mean) ** 2
        self._values.append((cells.values, np.bincount(cells.which, weights=weight)))
        self.deviance += float(weight @ cells.deviance)
        self.cells.add(batch, mean, cells.deviance)
        if self.knows_variance:
            v = self.loss.variance(mean)
            self.chi_squared += float(weight @ (squares / v))
            self.calibration.add(batch.x, mean, v, weight)
            self.slices.add(batch, mean, squares, v)
        else:
            # The residuals themselves say how exact a mean is, and the loss how bad they are.
            self.calibration.add(batch.x, mean, squares, weight)
            self.slices.add(batch, mean, cells.deviance, np.ones_like(mean))

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """The values of the data, and in how many cells each was seen."""
        values, counts = (np.concatenate(parts) for parts in zip(*self._values, strict=True))
        kinds, where = distinct(values)
        counts = np.bincount(where, weights=counts)
        if self.reading.n_zeros is not None:
            counts[kinds == 0] = self.reading.n_zeros
        return kinds, counts

    def quality(self, known: Estimate) -> Quality:
        """The figures, when all cells have been seen; ``known`` is the mean loss of the model."""
        reading, loss = self.reading, self.loss
        levels = _levels(self, known.loss)
        n_observed = reading.storage.n_observed
        degrees = max(n_observed - reading.freedom, 1)
        scale = 1.0 if has_scale(loss) else max(self.deviance / degrees, TINY)
        estimated = self.knows_variance and not has_scale(loss)
        noise = max(self.slices.scatter, TINY) if estimated else 1.0
        counted = data_name(loss) == "counts" and self.knows_variance
        return Quality(
            loss=str(loss),
            data=data_name(loss),
            cells=round(n_observed),
            nonzeros=levels.nonzeros,
            mean_loss=known.loss,
            mean_loss_error=known.error,
            constant_loss=levels.constant,
            saturated_loss=levels.saturated,
            deviance_explained=levels.explained,
            deviance_attainable=levels.attainable,
            dispersion=self.chi_squared / degrees if counted else None,
            scatter=self.slices.scatter if counted else None,
            calibration=self.calibration.bins(noise),
            hot_cells=self.cells.largest(scale),
            hot_slices=self.slices.worst(),
            sampled_cells=reading.sampled_cells,
        )


class Levels(NamedTuple):
    """What a model's loss is compared with."""

    nonzeros: int
    constant: float
    saturated: float
    explained: float | None
    attainable: float | None


def _levels(tally: QualityTally, own_loss: float) -> Levels:
    reading, loss = tally.reading, tally.loss
    values, counts = tally.table()
    saturated = _mean(loss.saturated(values), counts)
    constant = _constant_loss(loss, values, counts)
    if reading.samples_all:
        # Losses can only be compared if all of them are those of the sample.
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
    """Return the mean deviance of this model on data drawn from it.

    None where none can be drawn, or where means are astronomic.
    """
    if not loss.knows("simulate"):
        return None
    m, weights = reading.sample(SIMULATED)
    try:
        x = np.asarray(loss.simulate(m, reading.rng), dtype=np.float64)
    except ValueError:
        return None
    deviance = 2.0 * (loss.values_at(x, m) - loss.saturated(x))
    return float(weights @ deviance) / reading.storage.n_observed


def _mean(losses: np.ndarray, counts: np.ndarray) -> float:
    return float(counts @ losses / counts.sum())
