"""A rank that is given, or found on the way."""

from __future__ import annotations

from typing import Any

import typer

from smartcpd._app.cli.console import say

AUTO = "auto"


def rank_of(text: str) -> int | None:
    """Read the number of components; None for one that is to be found."""
    if text.strip().lower() == AUTO:
        return None
    if not text.strip().isdigit() or int(text) < 1:
        raise typer.BadParameter(
            f"{text!r} is neither a whole number of at least 1, such as 10, nor the word 'auto', "
            "which finds the rank by held-out cells",
            param_hint="--rank",
        )
    return int(text)


def found_rank(X: Any, loss: Any, parameters: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Compare ranks, as ``smartcpd select`` does; return what was found as plain values."""
    from smartcpd._app.signals import signals
    from smartcpd._inference.selection import select

    def tell(line: str) -> None:
        signals.heed()
        say(line, quiet)

    say("Comparing ranks ...", quiet)
    shared = {"constraint", "solver", "max_time", "n_threads"}
    found = select(
        X,
        losses=loss,
        random_state=parameters.get("random_state", 0),
        progress=tell,
        **{name: value for name, value in parameters.items() if name in shared},
    )
    return {
        "rank": found.rank,
        "recommendation": found.recommendation,
        "table": found.table,
        "seconds": found.seconds,
    }
