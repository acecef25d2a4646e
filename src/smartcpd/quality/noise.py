"""The scatter of data around its mean, for losses that say how large it is."""

from __future__ import annotations

import numpy as np

from smartcpd.losses import Data, Loss
from smartcpd.losses.negative_binomial import NegativeBinomial
from smartcpd.losses.rayleigh import Rayleigh

LEAST_MEAN = 1e-9
NAMES = {Data.COUNTS: "counts", Data.BINARY: "probabilities"}


def data_name(loss: Loss) -> str:
    """Return what a report calls the data of a loss."""
    return NAMES.get(loss.data, "measurements")


def has_scale(loss: Loss) -> bool:
    """Whether the loss says how large its noise is; otherwise that is estimated."""
    return loss.data in NAMES


def variance(loss: Loss, mean: np.ndarray) -> np.ndarray:
    """The variance of a cell with this mean; up to a factor for measurements."""
    if loss.data is Data.BINARY:
        return np.maximum(mean * (1.0 - mean), LEAST_MEAN)
    if loss.data is Data.COUNTS:
        extra = mean * mean / loss.r if isinstance(loss, NegativeBinomial) else 0.0
        return np.maximum(mean + extra, LEAST_MEAN)
    if isinstance(loss, Rayleigh):
        return np.maximum(mean, LEAST_MEAN) ** 2
    if loss.divergence is not None and loss.divergence != 2.0:
        return np.maximum(mean, LEAST_MEAN) ** (2.0 - loss.divergence)
    return np.ones_like(mean)


def square_variance(loss: Loss, v: np.ndarray) -> np.ndarray:
    """The variance of a squared residual whose expectation is v."""
    if loss.data is Data.BINARY:
        return np.maximum(v * (1.0 - 4.0 * v), 0.0)
    return 2.0 * v * v + (v if loss.data is Data.COUNTS else 0.0)
