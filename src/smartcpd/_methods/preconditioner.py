"""An approximate inverse of the Hessian that costs next to nothing to apply.

The expected Hessian of one row of a factor is a sum of w k k' over the row's cells, where k is the
product of the other factors' rows. With weights w that are about a product of one number a row,
this is a number for the row times the Hadamard product of weighted Gram matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._objectives.fisher_weights import Marginals
from smartcpd._problem.checkpoints.values import kept_value

DAMPING = 1e-5
"""The damping relative to the diagonal."""
TRACE_DAMPING = 1e-4
"""The damping relative to the mean of the diagonal, without which a component that vanished would
take infinite steps.
"""


@kept_value
@dataclass(frozen=True)
class Preconditioner:
    """An approximate inverse of the Hessian, block-diagonal in rows."""

    blocks: np.ndarray
    """The guessed Hessian of a row of weight 1: a (rank x rank) matrix for each mode."""
    inverses: np.ndarray
    rows: np.ndarray
    shape: tuple[int, ...]

    @classmethod
    def at(cls, A: np.ndarray, shape: tuple[int, ...], weights: Marginals) -> Preconditioner:
        n_cells = float(np.prod(shape, dtype=np.float64))
        factors = parts(A, shape)
        rows = parts(weights.rows[:, None], shape)
        grams = np.array([F.T @ (u * F) for F, u in zip(factors, rows, strict=True)])
        blocks = weights.mean / n_cells * products_of_others(grams)
        return cls(blocks, _inverses(blocks, 0.0), weights.rows[:, None], shape)

    def damped(self, mu: float) -> Preconditioner:
        """Return the same for the Hessian plus mu times the diagonal matrix of `scale`."""
        return replace(self, inverses=_inverses(self.blocks, mu))

    def scale(self) -> np.ndarray:
        """Return the curvature of the objective along each entry, stacked like the factors."""
        return np.repeat(_entries(self.blocks), self.shape, axis=0) * self.rows

    def solve(self, G: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The change that the gradient G calls for, of the entries that are ``free``."""
        return np.where(free, self.apply(G), 0.0)

    def apply(self, G: np.ndarray) -> np.ndarray:
        blocks = parts(G / self.rows, self.shape)
        return np.concatenate([B @ V for B, V in zip(blocks, self.inverses, strict=True)])

    @cached_property
    def damping(self) -> np.ndarray:
        """What is added to the diagonals of the blocks before they are inverted, a mode a row."""
        return _damping(self.blocks)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the whole matrix, stacked like the factors."""
        return np.repeat(_diagonals(self.inverses), self.shape, axis=0) / self.rows


def products_of_others(matrices: np.ndarray) -> np.ndarray:
    """For each of some matrices, the entrywise product of all the others."""
    one = np.ones_like(matrices[:1])
    before = np.cumprod(np.concatenate([one, matrices[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([one, matrices[:0:-1]]), axis=0)[::-1]
    return np.asarray(before * after)


def _diagonals(matrices: np.ndarray) -> np.ndarray:
    """The diagonals of some matrices, one a row."""
    return np.diagonal(matrices, axis1=1, axis2=2)


def _entries(blocks: np.ndarray) -> np.ndarray:
    """Return the diagonals, with something for components that vanished."""
    diagonals = _diagonals(blocks)
    return np.asarray(diagonals + TRACE_DAMPING * diagonals.mean(axis=1, keepdims=True) + 1e-300)


def _damping(blocks: np.ndarray) -> np.ndarray:
    diagonals = _diagonals(blocks)
    mean = diagonals.mean(axis=1, keepdims=True)
    return np.asarray(DAMPING * diagonals + TRACE_DAMPING * mean + 1e-300)


def _inverses(blocks: np.ndarray, mu: float) -> np.ndarray:
    added = _damping(blocks) + mu * _entries(blocks)
    inverses = np.linalg.inv(blocks + added[:, :, None] * np.eye(blocks.shape[1]))
    return np.asarray(0.5 * (inverses + inverses.transpose(0, 2, 1)))
