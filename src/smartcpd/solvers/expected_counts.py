"""Expected counts: from a gradient to the statistics of a multiplicative update.

For a loss that is c m - (something convex and increasing in log m), as poisson and bernoulli-odds
are, the bound at the current model is that of a Poisson likelihood with pseudo-counts

    S = A * (c Q - gradient of the sum over cells),

where Q is the gradient of the sum of m. Normalising S is then a step that never increases the loss,
for all modes at once.
"""

from __future__ import annotations

import numpy as np

from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss
from smartcpd.objectives import Objective
from smartcpd.objectives.sparse import SparseObjective
from smartcpd.problem import Problem
from smartcpd.solvers.mixture import Mixture
from smartcpd.storage import SparseTensor

SLOPES = {"poisson": 1.0, "bernoulli-odds": 1.0}
"""c for each loss of that form."""


def serves(problem: Problem) -> bool:
    """Whether the updates can fit a problem."""
    observed = not isinstance(problem.storage, SparseTensor) or problem.storage.absent == "zero"
    plain = all(c.name == "nonnegative" for c in problem.constraints)
    return problem.loss.name in SLOPES and plain and observed


def check(problem: Problem) -> None:
    if not serves(problem):
        raise IncompatibleError(
            "Multiplicative updates serve nonnegative factors under the losses "
            f"{' and '.join(SLOPES)}, absent cells being zeros; got {problem}. Use solver='smd'."
        )


def expected_counts(
    objective: Objective, loss: Loss, mixture: Mixture, n_cells: float
) -> tuple[float, np.ndarray]:
    """The loss of a mixture and its expected counts, row by row."""
    A = mixture.stacked()
    value, gradient = objective.gradient(A)
    # With columns of unit sum and the weights in mode 0, Q is 1 there and the weights elsewhere.
    first = mixture.shape[0]
    slope = SLOPES[loss.name]
    counts = np.empty_like(A)
    counts[:first] = slope - n_cells * gradient[:first]
    counts[first:] = slope * mixture.weights - n_cells * gradient[first:]
    counts *= A
    return value, np.maximum(counts, 0.0, out=counts)


def batch_counts(objective: SparseObjective, mixture: Mixture, positions: np.ndarray) -> np.ndarray:
    """The expected counts of some nonzeros under the poisson loss."""
    A = mixture.stacked()
    counts = -A * objective.events(A, True, positions).gradient
    return np.maximum(counts, 0.0, out=counts)
