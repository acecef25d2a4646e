"""Starts that cost some work: clipped least squares, or a short stochastic run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd import _strategies as solvers
from smartcpd import losses
from smartcpd._problem.problem import Problem
from smartcpd._strategies import Relay, Result
from smartcpd._strategies.compression import is_linear
from smartcpd.errors import IncompatibleError

EPOCHS = {"als": 20, "smd": 10}
"""Sweeps or epochs of each kind of start."""


def check(name: str, problem: Problem) -> None:
    """Refuse a start that the problem has no use for."""
    solvers.check_parts(solvers.get(name), problem)
    if name == "als":
        if not is_linear(problem.loss):
            raise IncompatibleError(
                f"init='als' fits X itself by least squares, and loss '{problem.loss}' models a "
                "transform of it. Use init='smd' or init='random'."
            )
        solvers.get("als").check(replace(problem, loss=losses.get("gaussian")))


def warmed(
    name: str,
    problem: Problem,
    relay: Relay,
    start: list[np.ndarray],
    rng: np.random.Generator,
) -> Result:
    """Make a few sweeps or epochs from a random start, as the first leg of a fit."""
    if name == "als":
        problem = replace(problem, loss=losses.get("gaussian"))
    result = relay.run(
        solvers.get(name),
        problem,
        start,
        rng,
        given_start=True,
        most_epochs=EPOCHS[name],
        prefix="start: ",
        comparable=name != "als",  # its rows would hold squares
    )
    if name == "als" and not any(c.signed for c in problem.constraints):
        # Zeros, which clipping leaves, are hard to leave for methods that multiply.
        lifted = [np.maximum(A, 1e-3 * A.mean(axis=0)) for A in result.factors]
        return replace(result, factors=lifted)
    return result
