"""The model that is the same in every cell, which deviance is compared with."""

from __future__ import annotations

import numpy as np

from smartcpd.losses import Loss

GOLDEN = 0.6180339887498949


def best_constant(loss: Loss, x: np.ndarray, weights: np.ndarray) -> float:
    """Return the one model value that describes weighted data best, by golden section."""
    ends = loss.best_model(np.array([x.min(), x.max()], dtype=np.float64))
    low, high = float(ends.min()), float(ends.max())

    def total(m: float) -> float:
        return float(weights @ loss.values_at(x, np.full(x.size, m)))

    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    values = [total(m) for m in inner]
    for _ in range(64):
        if values[0] <= values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - GOLDEN * (high - low)
            values[0] = total(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + GOLDEN * (high - low)
            values[1] = total(inner[1])
    # Where the loss is flat, rounding decides the search: the mean's own value may be better.
    at_mean = loss.link(float(weights @ x / weights.sum()))
    return min((at_mean, 0.5 * (low + high), *ends.tolist()), key=total)
