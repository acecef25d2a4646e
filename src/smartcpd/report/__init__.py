"""A page of HTML about a fitted model, one file that needs nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartcpd.report.write import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    """Import `write_report` on its first use: `smartcpd show` needs no more than names."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("smartcpd.report.write"), name)
