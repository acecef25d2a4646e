"""The kinds of losses: by their data, their models, and whether they know the noise."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import numpy as np


class Data(Enum):
    """The values that cells may hold; each kind has the lowest of them, and words for messages."""

    REAL = (-np.inf, "finite numbers")
    NONNEGATIVE = (0.0, "numbers that are not negative; loss 'gaussian' takes all")
    COUNTS = (0.0, "counts, which are not negative; loss 'gaussian' takes all numbers")
    BINARY = (0.0, "0 or 1 in every cell; loss 'poisson' takes counts")


class Domain(Enum):
    """The model values m that a loss is defined for."""

    REAL = "real"
    NONNEGATIVE = "nonnegative"


class Dispersion(Enum):
    """Whether a loss says how widely data scatters about its mean.

    The dispersion is the number d for which log p(x | m) = b(x, d) - l(x, m) / d.
    """

    UNKNOWN = "the loss names no distribution"
    FIXED = "it is 1"
    OPEN = "it is estimated from the data"
    OF_AMOUNTS = "it is 1 for counts, and estimated for amounts that are no whole numbers"


class Evidence(Protocol):
    """The evidence of data about the dispersion around a model, computed when asked for."""

    @property
    def mean_loss(self) -> float:
        """The mean of l(x, m) over the observed cells."""

    @property
    def mean_log(self) -> float:
        """The mean of log x over the observed cells."""

    @property
    def correction(self) -> float:
        """The number of cells over that number less the parameters of the model."""

    def pearson(self, variance: Callable[[np.ndarray], np.ndarray]) -> float:
        """The mean of (x - mean)² / variance(mean) over the observed cells, or over a sample."""
