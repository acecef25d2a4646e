"""The command line, a command a file.

Importing it takes a second, in which signals are answered already: see `smartcpd._app.signals`.
"""

from __future__ import annotations

from collections.abc import Sequence

from smartcpd._app.signals import signals

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit; a signal that came in time decides about the exit code."""
    try:
        with signals.owned():
            from smartcpd._app.cli.app import commanded

            commanded(arguments)
    except BaseException:
        # An interrupted import may fail with any error.
        if signals.asked is not None:
            # An interrupt that has passed through code compiled from text, as dataclasses do at
            # import, makes Python end by SIGINT whatever the code; text that runs undoes that.
            exec("pass")
            raise SystemExit(signals.code) from None
        raise
