"""How things are measured: side by side, several times, medians and spread."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numba


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> str:
        return f"{min(self.seconds):.3g}-{max(self.seconds):.3g} s"


def interleaved(tasks: dict[str, Callable[[], object]], repeats: int = 7) -> dict[str, Timing]:
    """Time each task ``repeats`` times in turn, so that a noisy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(repeats):
        for name, task in tasks.items():
            began = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - began)
    return {name: Timing(values) for name, values in seconds.items()}


def machine() -> str:
    """One line about what the figures were measured on."""
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
