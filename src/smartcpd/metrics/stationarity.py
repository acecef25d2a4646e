"""Measures of how close a model is to a stationary point of its constrained problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd import mirrors
from smartcpd._common import threads
from smartcpd._common.stacked import offsets, stack
from smartcpd._fitting.model import CPModel
from smartcpd._objectives import objective_of
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError, InvalidParameterError


def kkt_residual(
    model: CPModel, X: Any, constraint: Any = "auto", *, mask: Any = None, weights: Any = None
) -> float:
    """Return the largest relative change of a factor under a projected gradient step.

    Parameters
    ----------
    model : CPModel
        The model to judge.
    X : array
        The data it was fitted to.
    constraint : str, Constraint, or one a mode
        As for `smartcpd.SmartCPD`.
    mask, weights : arrays of the shape of X, optional
        As for `smartcpd.SmartCPD.fit`.

    Returns
    -------
    float
        0 where the optimality conditions hold, 1 or more at a poor start. It does not
        depend on the units of the data or on how components share their scale among modes.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, metrics
    >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="poisson")
    >>> metrics.kkt_residual(model, np.ones((2, 3))) < 1e-6
    True
    """
    problem = _problem(model, X, constraint, mask, weights)
    n_threads = threads.resolve(None)
    with threads.limited_to(n_threads):
        return relative_kkt_residual(
            problem, stack(model.with_exposure().distribute().factors), n_threads
        )


def stationarity(
    model: CPModel,
    X: Any,
    mirror: Any = "quadratic",
    constraint: Any = "auto",
    lam: float = 1e-2,
) -> float:
    """Return the paper's measure D_phi(Â, A), with Â the Bregman proximal point of A.

    Â minimises F(A') + D_phi(A', A) / (2 lam) over the constraint set; the two points coincide
    exactly where A is stationary. The minimisation takes many full passes: this is a tool for
    theory on small problems, `kkt_residual` is the one for data.

    Parameters
    ----------
    model : CPModel
        The model to judge.
    X : array
        The data it was fitted to.
    mirror : str or Mirror
        phi, the same for all modes.
    constraint : str, Constraint, or one a mode
        Entry-wise sets only: free, nonnegative or box.
    lam : float
        Positive, and small enough to make the function convex near A.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, metrics
    >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))], loss_function="gaussian")
    >>> metrics.stationarity(model, np.ones((2, 3)))
    0.0
    """
    from scipy.optimize import minimize  # slow to import, and rarely needed

    if not lam > 0:
        raise InvalidParameterError(f"lam must be positive; got {lam!r}.")
    problem = _problem(model, X, constraint)
    phi = mirrors.get(mirror)
    A = stack(model.with_exposure().distribute().factors)
    bounds = _bounds(problem, phi)
    p = phi.params
    dual = _to_dual(phi, A)
    n_threads = threads.resolve(None)
    objective = objective_of(problem.storage, problem.loss, n_threads)

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        B = flat.reshape(A.shape)
        value, gradient = objective.gradient(B)
        divergence = phi.potential(B, p) - phi.potential(A, p) - dual * (B - A)
        value += divergence.sum() / (2 * lam)
        gradient += (_to_dual(phi, B) - dual) / (2 * lam)
        return value, gradient.reshape(-1)

    with threads.limited_to(n_threads):
        found = minimize(
            value_and_gradient,
            A.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 500, "maxfun": 2000, "ftol": 1e-15, "gtol": 1e-12},
        )
    return float(phi.bregman(found.x.reshape(A.shape), A).sum())


def _problem(
    model: CPModel, X: Any, constraint: Any, mask: Any = None, weights: Any = None
) -> Problem:
    if model.loss_function is None:
        raise InvalidParameterError(
            "This model has no loss, so it has no gradient. Build it with loss_function=..."
        )
    problem = Problem.build(
        X, model.rank, model.loss_function, constraint=constraint, mask=mask, weights=weights
    )
    if problem.shape != model.shape:
        raise InvalidParameterError(
            f"X has shape {problem.shape}, the model {model.shape}. They must be the same."
        )
    return problem


def _to_dual(phi: mirrors.Mirror, A: np.ndarray) -> np.ndarray:
    out = np.empty_like(A)
    phi.to_dual_block("float64")(np.ascontiguousarray(A).reshape(-1), phi.params, out.reshape(-1))
    return out


def _bounds(problem: Problem, phi: mirrors.Mirror) -> list[tuple[float, float]]:
    """The interval of every entry, in the order of the flattened stack."""
    intervals = {
        "free": lambda c: (-np.inf, np.inf),
        "nonnegative": lambda c: (phi.floor, np.inf),
        "box": lambda c: c.params(phi),
    }
    starts = offsets(problem.shape)
    bounds: list[tuple[float, float]] = []
    for mode, constraint in enumerate(problem.constraints):
        if constraint.name not in intervals:
            raise IncompatibleError(
                f"stationarity handles entry-wise sets only; mode {mode} has '{constraint}'. "
                "Use kkt_residual."
            )
        n_entries = int(starts[mode + 1] - starts[mode]) * problem.rank
        bounds += [intervals[constraint.name](constraint)] * n_entries
    return bounds
