"""A guess of the Hessian of all factors together, to be solved with.

The guess is the Hessian of a tensor whose cells have weights that are a product of one number a
row. Unlike a `Preconditioner`, which it contains, it knows how a change of one factor can make up
for a change of another: along such directions, which are many where components are alike, the loss
hardly changes and block-diagonal guesses lead nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from smartcpd._common.stacked import offsets, parts
from smartcpd._kernels.coupled_solve import compiled_coupled_solve
from smartcpd._methods.preconditioner import Preconditioner, products_of_others
from smartcpd._objectives.fisher_weights import Marginals
from smartcpd._problem.checkpoints.values import kept_value

TOLERANCE, MOST_STEPS = 0.1, 30


@kept_value
@dataclass(frozen=True)
class CoupledHessian:
    """The guessed Hessian of stacked factors, at the point where it was made."""

    own: Preconditioner
    """The blocks of single rows."""
    weighted: np.ndarray
    """The stacked factors, every row times its weight."""
    pairs: np.ndarray
    """The entrywise products of the other modes' Gram matrices, for all modes m and n."""

    @classmethod
    def at(cls, A: np.ndarray, shape: tuple[int, ...], weights: Marginals) -> CoupledHessian:
        own = Preconditioner.at(A, shape, weights)
        weighted = A * own.rows
        factors = zip(parts(A, shape), parts(weighted, shape), strict=True)
        grams = np.array([F.T @ W for F, W in factors])
        scale = weights.mean / float(np.prod(shape, dtype=np.float64))
        pairs = np.empty((len(shape), *grams.shape))
        for m in range(len(shape)):
            others = grams.copy()
            others[m] = scale
            pairs[m] = products_of_others(others)
            pairs[m, m] *= scale
        return cls(own, weighted, pairs)

    def solve(self, G: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return approximately the change that the gradient G calls for, of the ``free``
        entries.
        """
        X = np.empty_like(G)
        compiled_coupled_solve()(
            self.weighted,
            np.ascontiguousarray(self.own.rows[:, 0]),
            self._offsets,
            self.own.blocks,
            self.pairs,
            self.own.inverses,
            self.own.damping,
            np.ascontiguousarray(G),
            free,
            TOLERANCE,
            MOST_STEPS,
            X,
        )
        return X

    @cached_property
    def _offsets(self) -> np.ndarray:
        return offsets(self.own.shape)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the inverse, were there no coupling."""
        return self.own.diagonal()
