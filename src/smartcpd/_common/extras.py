"""Packages that are needed for a purpose only."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from smartcpd.errors import MissingExtraError


def required(package: str, purpose: str) -> Any:
    """Import an optional package, or raise an error that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package, package, purpose) from None


def if_loaded(module: str, name: str, otherwise: Any) -> Any:
    """Return something of another package, or a stand-in in a program that has not imported it.

    Who asks for the package's own has imported it; others should not wait for that.
    """
    return getattr(sys.modules.get(module), name, otherwise)
