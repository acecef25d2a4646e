"""Expected counts, the statistics of a multiplicative update, computed from a gradient.

For a loss that is c m - (something convex and increasing in log m), as poisson and bernoulli-odds
are, the bound at the current model is that of a Poisson likelihood with pseudo-counts

    S = A * (Q - gradient of the sum over cells / c),

where Q is the gradient of the sum of m. Normalising S is then a step that never increases the loss,
for all modes at once.

Cells of weight w < 1, those that are missing among them, add (1 - w) m to the pseudo-counts: what
the model expects where nothing was seen. Larger weights are brought down to 1 by their maximum,
which changes no minimiser.
"""

from __future__ import annotations

import numpy as np

from smartcpd._methods.mixture import Mixture
from smartcpd._objectives import Objective, scaled_gradient
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Loss


def serves(problem: Problem) -> bool:
    """Whether the updates can fit a problem as a mixture with weights of its own."""
    plain = all(c.name == "nonnegative" for c in problem.constraints)
    return problem.loss.pseudo_count_slope is not None and plain


def check(problem: Problem) -> None:
    if not serves(problem):
        raise IncompatibleError(
            "Solver 'few-events' serves nonnegative factors under the losses poisson, "
            f"bernoulli-odds and alpha above 0 up to 1; got {problem}. Use solver='auto'."
        )


def expected_counts(
    objective: Objective, loss: Loss, mixture: Mixture, n_cells: float
) -> tuple[float, np.ndarray]:
    """The loss of a mixture and its expected counts, row by row.

    ``n_cells`` is what the mean loss is a mean over, with weights of at most 1.
    """
    A = mixture.stacked()
    value, scaled = scaled_gradient(objective, A)
    # With columns of unit sum and the weights in mode 0, Q is 1 there and the weights elsewhere.
    first = mixture.shape[0]
    c = loss.pseudo_count_slope
    assert c is not None
    counts = A.copy()
    counts[first:] *= mixture.weights
    counts -= n_cells / c * scaled
    return value, np.maximum(counts, 0.0, out=counts)
