"""The version of this package, and of those that it stands on."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata

try:
    __version__ = metadata.version("smartcpd")
except metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"


def installed(packages: Iterable[str], unknown: str) -> dict[str, str]:
    """Return the versions of Python and of packages; those that have none are ``unknown``."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = unknown
    return found
