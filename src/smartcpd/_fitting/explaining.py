"""What a fit would do, in words."""

from __future__ import annotations

import inspect
from typing import Any

from smartcpd import losses
from smartcpd._data.labelled import taken_off
from smartcpd._fitting.fit import FIT_PARAMETERS, fit, problem_of, unlabelled
from smartcpd._fitting.plan import Plan
from smartcpd._fitting.settings import check_runs
from smartcpd._strategies import registry


def explain(X: Any, rank: int, loss: Any = "auto", **parameters: Any) -> str:
    """Say what a fit with these parameters would do, without doing it.

    Parameters
    ----------
    X, rank, loss, **parameters
        As for `decompose`.

    Returns
    -------
    str
        The problem as it was understood, the solver and the reason for it.

    Examples
    --------
    >>> import smartcpd
    >>> X, _ = smartcpd.datasets.count((30, 30, 30), rank=3, random_state=0)
    >>> print(smartcpd.explain(X, 3, "poisson"))  # doctest: +ELLIPSIS
    30x30x30, rank 3, loss poisson, constraint nonnegative, ...
    solver dense: X is dense and has at most 8388608 cells
    """
    inspect.signature(fit).bind(X, rank, loss, **parameters)  # raises an error for unknown names
    parameters = FIT_PARAMETERS | {"rank": rank, "loss": loss} | parameters
    parameters.pop("client", None)
    solver = registry.get(parameters["solver"])
    parameters |= registry.own_defaults(solver, parameters, FIT_PARAMETERS)
    known = None if parameters["loss"] == "auto" else losses.get(parameters["loss"])
    if known is not None and known.is_open:
        first = explain(X, **(parameters | {"loss": known.limit}))
        return f"{first}\nthen loss {known}, its parameter and the factors in turn until both stay"
    check_runs(parameters)
    tensor, modes = taken_off(X)
    problem = problem_of(tensor, parameters | unlabelled(parameters, modes))
    plan = Plan.of(problem, parameters)
    lines = [str(problem)]
    if problem.loss_reason:
        lines.append(f"loss {problem.loss_reason}")
    lines.append(f"solver {plan.solver.name}: {plan.reason}")
    if problem.scale_remark:
        lines.append(problem.scale_remark)
    needs = problem.storage.fit_needs(problem.rank, problem.loss)
    if needs is not None:
        lines.append(str(needs))
    return "\n".join(lines)
