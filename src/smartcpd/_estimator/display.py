"""What an estimator says of itself: its parameters, and once it is fitted what was found."""

from __future__ import annotations

from smartcpd._fitting.model import CPModel
from smartcpd._problem.history import Status

TIMES = {1: "not confirmed", 2: "found twice"}


def found(model: CPModel, status: Status, explained: float | None) -> str:
    """Return what a fit found in a line: "6 components, 34 % of deviance, converged, ..."."""
    parts = [f"{model.rank} component{'s' * (model.rank > 1)}"]
    if explained is not None:
        parts.append(f"{100 * explained:.0f} % of deviance")
    parts.append(_end(status))
    if status.converged and status.found:
        parts.append(TIMES.get(status.found, f"found {status.found} times"))
    return ", ".join(parts)


def _end(status: Status) -> str:
    if status.interrupted:
        return "interrupted"
    return "converged" if status.converged else "not converged"
