"""An approximate inverse of the Hessian that costs next to nothing to apply.

The expected Hessian of one row of a factor is a sum of w k k' over the row's cells, where k is the
product of the other factors' rows. With weights w that are about a product of one number a row,
this is a number for the row times the Hadamard product of weighted Gram matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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

    blocks: list[np.ndarray]
    """The guessed Hessian of a row of weight 1: a (rank x rank) matrix for each mode."""
    inverses: list[np.ndarray]
    rows: np.ndarray
    shape: tuple[int, ...]

    @classmethod
    def at(cls, A: np.ndarray, shape: tuple[int, ...], weights: Marginals) -> Preconditioner:
        n_cells = float(np.prod(shape, dtype=np.float64))
        factors = parts(A, shape)
        rows = parts(weights.rows[:, None], shape)
        grams = [F.T @ (u * F) for F, u in zip(factors, rows, strict=True)]
        blocks = []
        for mode in range(len(shape)):
            others = [G for k, G in enumerate(grams) if k != mode]
            blocks.append(weights.mean / n_cells * np.prod(others, axis=0))
        return cls(blocks, [_inverse(H, 0.0) for H in blocks], weights.rows[:, None], shape)

    def damped(self, mu: float) -> Preconditioner:
        """Return the same for the Hessian plus mu times the diagonal matrix of `scale`."""
        return replace(self, inverses=[_inverse(H, mu) for H in self.blocks])

    def scale(self) -> np.ndarray:
        """Return the curvature of the objective along each entry, stacked like the factors."""
        return np.repeat([_entries(H) for H in self.blocks], self.shape, axis=0) * self.rows

    def solve(self, G: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The change that the gradient G calls for, of the entries that are ``free``."""
        return np.where(free, self.apply(G), 0.0)

    def apply(self, G: np.ndarray) -> np.ndarray:
        blocks = parts(G / self.rows, self.shape)
        return np.concatenate([B @ V for B, V in zip(blocks, self.inverses, strict=True)])

    def damping(self, mode: int) -> np.ndarray:
        """Return what is added to the diagonal of a mode's block before it is inverted."""
        return _damping(self.blocks[mode])

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the whole matrix, stacked like the factors."""
        return np.repeat([np.diag(V) for V in self.inverses], self.shape, axis=0) / self.rows


def _entries(H: np.ndarray) -> np.ndarray:
    """Return the diagonal, with something for components that vanished."""
    diagonal = np.diag(H)
    return diagonal + TRACE_DAMPING * diagonal.mean() + 1e-300


def _damping(H: np.ndarray) -> np.ndarray:
    diagonal = np.diag(H)
    return DAMPING * diagonal + TRACE_DAMPING * diagonal.mean() + 1e-300


def _inverse(H: np.ndarray, mu: float) -> np.ndarray:
    inverse = np.linalg.inv(H + np.diag(_damping(H) + mu * _entries(H)))
    return 0.5 * (inverse + inverse.T)
