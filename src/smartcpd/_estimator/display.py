"""What an estimator says of itself: its parameters, and once it is fitted what was found."""

from __future__ import annotations

from collections.abc import Mapping

from smartcpd._fitting.model import CPModel
from smartcpd._problem.history import Status

TIMES = {1: "not confirmed", 2: "found twice"}
WIDTH, LONGEST = 80, 300
"""Characters of a line, and of a parameter's value."""


def called(name: str, parameters: Mapping[str, str]) -> str:
    """Write parameters as in the call that sets them, as many on a line as there is room for."""
    head, lines = f"{name}(", list[str]()
    for item in (f"{parameter}={_short(value)}" for parameter, value in parameters.items()):
        if lines and len(head) + len(lines[-1]) + len(item) + 3 <= WIDTH:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return head + (",\n" + " " * len(head)).join(lines) + ")"


def _short(value: str) -> str:
    """Return a value on one line, without its middle where it is long."""
    line, half = " ".join(value.split()), LONGEST // 2
    return line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}"


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
