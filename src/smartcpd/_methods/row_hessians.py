"""The Hessians of all rows as a guess of the whole Hessian.

Cells of which a model of logarithms is certain do not bend the loss at all, and others do so by
orders of magnitude more. Such weights are no product of one number a row, as the other guesses take
them to be: steps that trust those creep. One pass over the cells gives the Hessian of each row as
it is, for the other factors as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._objectives.slices import slices_of
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd._problem.problem import Problem

OWN_DAMPING, USUAL_DAMPING, LEAST_LEFT = 1e-6, 1e-4, 1e-4
"""The damping relative to a row's own diagonal, and to that of all rows of its factor far from an
end; near it, what is left of the second, at the least. Rows whose cells are all but certain have
scales of their own: damped like the others they creep, and hardly damped far from an end they run
to where the loss is flat, and are lost."""
MOST_CELLS, MOST_NUMBERS = 1 << 25, 1 << 23
"""The most cells that are looked at one by one, zeros and all, and the most numbers that the
Hessians of all rows may hold together."""


@kept_value
@dataclass(frozen=True)
class RowHessians:
    """The inverse Hessians of all rows, block by block."""

    inverses: np.ndarray
    """(rows x rank x rank), stacked like the factors."""

    @classmethod
    def of(cls, bends: list[np.ndarray], left: float) -> RowHessians:
        """Make them of the Hessians of the rows of each factor; what steps gain, relative to where
        it began to be little, is what is ``left`` of the damping.
        """
        damping = USUAL_DAMPING * min(max(left, LEAST_LEFT), 1.0) ** 1.5
        return cls(np.concatenate([_inverses(of_rows, damping) for of_rows in bends]))

    def solve(self, G: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The change that the gradient G calls for, of the entries that are ``free``."""
        return np.where(free, np.matmul(self.inverses, G[:, :, None])[:, :, 0], 0.0)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of the whole matrix, stacked like the factors."""
        diagonal: np.ndarray = np.einsum("irr->ir", self.inverses)
        return diagonal


def row_bends(
    problem: Problem, n_threads: int, count_pass: Callable[[], None]
) -> Callable[[np.ndarray], list[np.ndarray]] | None:
    """Return what computes the Hessians of the rows of all factors, or None where other guesses are
    as good, or where these would take too much time or room.
    """
    storage = problem.storage
    n_cells = storage.n_cells if storage.absent == "zero" else storage.n_stored
    n_numbers = sum(problem.shape) * problem.rank**2
    if not problem.loss.logarithmic or n_cells > MOST_CELLS or n_numbers > MOST_NUMBERS:
        return None

    def bends(A: np.ndarray) -> list[np.ndarray]:
        count_pass()
        factors = [np.ascontiguousarray(F, np.float64) for F in parts(A, problem.shape)]
        n = float(storage.n_observed)
        return [
            slices_of(storage, problem.loss, factors, mode, n_threads).at(F).bend / n
            for mode, F in enumerate(factors)
        ]

    return bends


def _inverses(bends: np.ndarray, damping: float) -> np.ndarray:
    own = np.einsum("irr->ir", bends).mean(axis=1)
    damped = bends.copy()
    ridge = OWN_DAMPING * own + damping * own.mean() + 1e-300
    np.einsum("irr->ir", damped)[:] += ridge[:, None]
    inverses: np.ndarray = np.linalg.inv(damped)
    return 0.5 * (inverses + inverses.transpose(0, 2, 1))
