"""Verbs that a class on a lower floor offers, and that modules on floors above it perform.

A model can be saved, drawn and judged, but what saves, draws and judges is written in terms of
models. The class therefore has a door for each of those verbs, and `smartcpd._verbs`, which the
package imports first, says where each of them leads. The estimator goes through doors too, so that
a fit does not wait for the import of what judges it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Doors:
    """Doors map verbs to the functions that perform them, each imported when it is first called."""

    def __init__(self) -> None:
        self.leads: dict[str, str] = {}
        """The module that performs each verb, in a function of the same name."""

    def __getattr__(self, verb: str) -> Any:
        if verb not in self.leads:
            raise AttributeError(f"No module performs {verb!r}; see smartcpd._verbs.")
        return getattr(import_module(self.leads[verb]), verb)


doors = Doors()
