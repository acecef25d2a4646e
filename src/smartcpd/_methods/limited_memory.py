"""What a quasi-Newton method remembers of its last steps.

The recursion of limited-memory BFGS visits steps one by one; with the inner products of steps and
changes of the gradient at hand, it is a few products with whole matrices and a triangular solve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._problem.checkpoints.values import kept_value

MOST = 20
"""The largest number of steps that are remembered."""
TINY = 1e-200


@kept_value
@dataclass(frozen=True)
class LimitedMemory:
    """Steps S and the changes Y of the gradient that they made, a row each, the oldest first."""

    S: np.ndarray
    Y: np.ndarray
    products: np.ndarray
    """s'y of every step s and every change y that came with it or after it; 0 for earlier ones."""

    @classmethod
    def empty(cls, size: int) -> LimitedMemory:
        return cls(np.empty((0, size)), np.empty((0, size)), np.empty((0, 0)))

    def __len__(self) -> int:
        return len(self.S)

    def after(self, step: np.ndarray, change: np.ndarray) -> LimitedMemory:
        """Return the memory with one more step, unless the objective was not convex along it."""
        s, y = step.ravel(), change.ravel()
        curvature = float(s @ y)
        if not curvature > 1e-10 * float(np.linalg.norm(s)) * float(np.linalg.norm(y)) + TINY:
            return self
        kept = slice(max(0, len(self) - MOST + 1), None)
        S, Y = np.vstack([self.S[kept], s]), np.vstack([self.Y[kept], y])
        products = np.zeros((len(S), len(S)))
        products[:-1, :-1] = self.products[kept, kept]
        products[:, -1] = S @ y
        return LimitedMemory(S, Y, products)

    def before_guess(self, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient G without what the remembered steps explain, and the length of each
        step that explains the rest."""
        shares = _triangular(self.products, self.S @ G.ravel())
        return G - (shares @ self.Y).reshape(G.shape), shares

    def after_guess(self, D: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return the direction for the whole gradient, given a guessed one for its rest."""
        wanted = self.products.diagonal() * shares - self.Y @ D.ravel()
        lengths = _triangular(self.products, wanted, transposed=True)
        return D + (lengths @ self.S).reshape(D.shape)

    @property
    def newest(self) -> tuple[np.ndarray, float]:
        """The last change of the gradient, and the curvature along the step that made it."""
        return self.Y[-1], float(self.products[-1, -1])


def _triangular(R: np.ndarray, b: np.ndarray, transposed: bool = False) -> np.ndarray:
    """Solve R x = b, or R'x = b, for an upper triangular R."""
    from scipy.linalg.lapack import dtrtrs  # slow to import, and not every fit comes here

    x, _ = dtrtrs(R, b, trans=int(transposed))
    return np.asarray(x)
