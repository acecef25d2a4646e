"""Least squares for one factor, the others being known."""

from __future__ import annotations

import numpy as np

from smartcpd._strategies.compression.compression import Scales


def least_squares_rows(
    X: np.ndarray, factors: list[np.ndarray], mode: int, scales: Scales
) -> np.ndarray:
    """The factor of ``mode`` that fits best; the scales of the other modes weight the cells."""
    projected = np.moveaxis(X, mode, 0).astype(np.float32)[..., None]
    gram = np.ones((1, 1))
    others = [k for k in range(X.ndim) if k != mode]
    for k in reversed(others):
        scaled = factors[k] * scales.rows[k][:, None]
        weighted = (scaled * scales.rows[k][:, None]).astype(np.float32)
        gram = gram * (scaled.T @ scaled)
        if projected.shape[-1] == 1:
            projected = projected[..., 0] @ weighted
        else:
            projected = np.einsum("...kr,kr->...r", projected, weighted)
    gram += (1e-6 * np.trace(gram) / len(gram) + 1e-300) * np.eye(len(gram))
    return np.asarray(np.linalg.solve(gram, projected.astype(np.float64).T).T)
