"""Packages that are needed for a purpose only."""

from __future__ import annotations

import importlib
from typing import Any

from smartcpd.errors import MissingExtraError


def required(package: str, purpose: str) -> Any:
    """Import an optional package, or raise an error that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package, package, purpose) from None
