"""The statistical limit of a seed: the minimiser of the loss reached from the true factors."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from smartcpd import losses
from smartcpd._common import threads
from smartcpd._common.stacked import stack, unstack
from smartcpd._data.opening import as_storage
from smartcpd._fitting.model import CPModel
from smartcpd._objectives import objective_of


def oracle(
    X: np.ndarray,
    truth: list[np.ndarray],
    loss: str,
    iterations: int = 3000,
    mask: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> CPModel:
    """SciPy's L-BFGS-B from the truth, on exact values and gradients, factors >= 0.

    Cells where ``mask`` is false are missing for it as well; ``weights`` say how much cells count.
    """
    A = stack(truth)
    n_threads = threads.resolve(None)
    objective = objective_of(as_storage(X, mask=mask, weights=weights), losses.get(loss), n_threads)

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective.gradient(flat.reshape(A.shape))
        return 1e3 * value, 1e3 * gradient.reshape(-1)

    with threads.limited_to(n_threads):
        found = minimize(
            value_and_gradient,
            A.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            bounds=[(1e-9, None)] * A.size,
            options={"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-13, "gtol": 1e-9},
        )
    return CPModel(unstack(found.x.reshape(A.shape), X.shape), loss_function=loss)
