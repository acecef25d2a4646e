"""The machine and the packages that figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

import numba


def machine() -> str:
    """Return one line about the machine and the packages that do the work."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    packages = ", ".join(f"{p} {version(p)}" for p in ("numpy", "numba", "scipy"))
    return (
        f"{model}, {os.cpu_count()} cores ({numba.config.NUMBA_NUM_THREADS} used by Numba), "
        f"Python {platform.python_version()}, {packages}"
    )
