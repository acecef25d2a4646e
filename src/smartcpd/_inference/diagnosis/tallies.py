"""Sums over the cells that the checks need, from one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd._common.model_cells import values_at
from smartcpd._data.storage.observed import is_whole
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Data, Domain, Loss
from smartcpd.quality.calibration import Calibration
from smartcpd.quality.hot_spots import WorstCells
from smartcpd.quality.reading import Batch, Judged, Reading
from smartcpd.quality.result import HotCell

PER_OCTAVE = 16
"""Number of bins for each doubling of the mean of counts, so narrow that all means in one are about
equal.
"""
LOWEST, HIGHEST = -60, 60
"""The first and last octave."""
MOST = 1e100
NOISE_CELLS = 1 << 18
"""About how many cells are used to estimate how noisy a gradient is."""


@dataclass
class Excess:
    """A sum that is 0 in expectation if the model is right, and its variance then."""

    total: float = 0.0
    variance: float = 0.0

    def add(self, batch: Batch, values: np.ndarray, variances: np.ndarray) -> None:
        """Add values of the cells, and their variances under the model."""
        parts = batch.weight * values
        total = float(parts.sum())
        self.total += total
        # A cell that counts twice is as noisy as two cells that always agree.
        self.variance += float((own_weights(batch) * batch.weight) @ variances)
        if batch.sampled and parts.size:
            self.variance += max(float(parts @ parts) - total**2 / parts.size, 0.0)

    @property
    def score(self) -> float:
        """The sum in standard deviations."""
        return self.total / math.sqrt(self.variance) if self.variance > 0 else 0.0


class CountTable:
    """Sums over counts of about the same mean."""

    def __init__(self, shrinkage: float) -> None:
        """Begin with empty bins; ``shrinkage`` is how much closer the data is to a model fitted to
        it than to the truth, in terms of squares.
        """
        self.shrinkage = shrinkage
        self.sums = np.zeros((6, (HIGHEST - LOWEST) * PER_OCTAVE))

    def add(self, batch: Batch, mean: np.ndarray) -> None:
        octave = np.log2(np.maximum(mean, 2.0**LOWEST))
        place = np.clip(((octave - LOWEST) * PER_OCTAVE).astype(int), 0, self.sums.shape[1] - 1)
        extra = (batch.x - mean) ** 2 / self.shrinkage - batch.x
        empty = (batch.x == 0).astype(float)
        parts = (np.ones_like(mean), mean, mean * mean, extra, own_weights(batch), empty)
        for total, part in zip(self.sums, parts, strict=True):
            total += np.bincount(place, weights=batch.weight * part, minlength=total.size)

    def dispersion(self) -> float:
        """Return the alpha of variance = mean + alpha mean², 0 if there is none.

        Each mean is weighted by how exactly it tells alpha, which depends on alpha itself.
        """
        cells, means, squares, extra, _, _ = self.sums[:, self.sums[0] > 0]
        at = means / cells
        alpha = 1.0  # a start at which no single large count can outvote the others
        for _ in range(50):
            weight = 1.0 / (1.0 + alpha * at) ** 2
            below = float(weight @ squares)
            following = max(float(weight @ extra) / below, 0.0) if below > 0 else 0.0
            if abs(following - alpha) <= 1e-6 * max(alpha, 1e-12):
                break
            alpha = following
        return alpha

    def zeros(self, alpha: float, least: float) -> tuple[float, float, float]:
        """Count the zeros among cells whose mean is at least so much; return their number, how many
        counts with this dispersion would have, and the variance of that.
        """
        cells, means, _, _, own, empty = self.sums[:, self.sums[0] > 0]
        at = means / cells
        chance = np.exp(-at) if alpha <= 0 else np.exp(-np.log1p(alpha * at) / alpha)
        large = at >= least
        return (
            float(empty[large].sum()),
            float((cells * chance)[large].sum()),
            float((own * chance * (1.0 - chance))[large].sum()),
        )


class Tallies:
    """The sums that were found; those that mean nothing for a loss are None."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.loss: Loss = reading.loss
        kind = self.loss.data if self.loss.knows("variance") else None
        counts = kind is Data.COUNTS and is_whole(reading.storage)
        share = reading.freedom / reading.storage.n_observed
        self.counts = CountTable(max(1.0 - share, 0.5)) if counts else None
        self.scatter = Excess()
        self.squares = self.variances = 0.0
        self.calibration: Calibration | None = None
        if kind is Data.BINARY:
            self.calibration = Calibration(self.loss, *reading.overview)
        self.hot_cells = WorstCells()
        self.deviance = self.n_cells = self.n_read = 0.0
        self.certain = 0.0
        self.noise = 0.0
        self._rng = np.random.default_rng(0)

    def add(self, cells: Judged) -> None:
        batch = cells.batch
        if self.loss.domain is Domain.NONNEGATIVE and float(batch.m.min()) < 0:
            raise InvalidParameterError(
                f"The model has negative values, as low as {float(batch.m.min()):.3g}, which loss "
                f"'{self.loss}' cannot describe. Fit it under that loss first."
            )
        # Clipped, so that squares of what a diverged model expects are numbers.
        mean = np.clip(cells.mean, -MOST, MOST)
        self.n_read += batch.x.size
        self.n_cells += float(batch.weight.sum())
        self.certain += float(batch.weight[self.loss.certain(batch.m)].sum())
        if self.counts is not None:
            self._add_counts(self.counts, batch, mean, self.loss.variance(mean))
        if self.calibration is not None:
            v = own_weights(batch) * self.loss.variance(mean)
            self.calibration.add(batch.x, mean, v, batch.weight)
        deviance = np.where(np.isfinite(cells.deviance), cells.deviance, 0.0)
        self.deviance += float(batch.weight @ deviance)
        self.hot_cells.add(batch, mean, own_weights(batch) * deviance)
        self._add_noise(batch)

    def _add_counts(self, counts: CountTable, batch: Batch, mean: Any, v: Any) -> None:
        counts.add(batch, mean)
        errors = (batch.x - mean) ** 2
        # A weight keeps a few cells with large means from outvoting all others.
        level = 1.0 / (1.0 + mean)
        self.squares += float(batch.weight @ (level * errors))
        self.variances += float(batch.weight @ (level * v))
        if self.loss.overdispersion:
            spread = self.loss.square_variance(v)
            self.scatter.add(batch, level * (errors - v), level**2 * spread)
        else:
            self.scatter.add(batch, level * (errors - batch.x), 2.0 * (level * mean) ** 2)

    def _add_noise(self, batch: Batch) -> None:
        """Add to the expected squared norm of A * gradient, entry by entry, before it is divided by
        n², the same for every mode: the sum over the cells of w² l'² times the squares of what the
        components have there.
        """
        expected = self.reading.sampled_cells or self.reading.storage.n_cells
        share = min(1.0, NOISE_CELLS / expected)
        chosen = np.flatnonzero(self._rng.random(batch.x.size) < share)
        if not chosen.size:
            return
        m = batch.m[chosen]
        slope = self.loss.slopes_at(self._as_expected(batch.x[chosen], m), m)
        weight = (own_weights(batch) * batch.weight)[chosen] * slope**2 / share
        squares = [A * A for A in self.reading.factors]
        places = [index[chosen] for index in batch.places]
        self.noise += float(weight @ values_at(squares, self.reading.ones, places))

    def _as_expected(self, x: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Return data drawn from the model where the loss knows how it scatters, since misfit is no
        noise.
        """
        if (self.counts is None and self.calibration is None) or not self.loss.knows("simulate"):
            return x
        try:
            return np.asarray(self.loss.simulate(m, self._rng), np.float64)
        except ValueError:  # the means are beyond what can be drawn
            return x

    @property
    def ratio(self) -> float:
        """Return the squared residuals of counts over what the loss says of them; 1 for
        other data.
        """
        return self.squares / self.variances if self.variances > 0 else 1.0

    def worst_cells(self) -> tuple[HotCell, ...]:
        """Return the cells with the largest deviance, which is the square of their residual."""
        return self.hot_cells.largest(1.0)


def own_weights(batch: Batch) -> np.ndarray:
    return np.ones_like(batch.weight) if batch.own is None else batch.own
