"""Starts that cost some work: clipped least squares, or a short stochastic run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartcpd import losses
from smartcpd._methods.als import als
from smartcpd._methods.base import Result
from smartcpd._methods.smd import smd
from smartcpd._problem.problem import Problem
from smartcpd._strategies.compression import is_linear
from smartcpd._strategies.registry import check_parts
from smartcpd._strategies.sequence import FitSequence
from smartcpd.errors import IncompatibleError

METHODS = {"als": als, "smd": smd}
EPOCHS = {"als": 20, "smd": 10}
"""Sweeps or epochs of each kind of start."""


def check(name: str, problem: Problem) -> None:
    """Refuse a start that the problem has no use for."""
    check_parts(METHODS[name], problem)
    if problem.shared:
        raise IncompatibleError(
            f"init='{name}' moves the factor of one mode at a time, and modes share a factor in "
            f"{problem}. Use init='random' or factors of your own."
        )
    if name == "als":
        if not is_linear(problem.loss):
            raise IncompatibleError(
                f"init='als' fits X itself by least squares, and loss '{problem.loss}' models a "
                "transform of it. Use init='smd' or init='random'."
            )
        als.check(replace(problem, loss=losses.get("gaussian")))


def warmed(
    name: str,
    problem: Problem,
    sequence: FitSequence,
    start: list[np.ndarray],
    rng: np.random.Generator,
) -> Result:
    """A few sweeps or epochs from a random start, as the first run of a fit."""
    if name == "als":
        problem = replace(problem, loss=losses.get("gaussian"))
    result = sequence.run(
        METHODS[name],
        problem,
        rng,
        start,
        most_epochs=EPOCHS[name],
        prefix="start: ",
        comparable=name != "als",  # its rows would hold squares
    )
    if name == "als" and not any(c.signed for c in problem.constraints):
        # Zeros, which clipping leaves, are hard to leave for methods that multiply.
        lifted = [np.maximum(A, 1e-3 * A.mean(axis=0)) for A in result.factors]
        return replace(result, factors=lifted)
    return result
