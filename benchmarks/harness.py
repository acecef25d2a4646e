"""How things are measured: side by side, several times, medians and spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from smartcpd.paper.machine import machine

__all__ = ["Timing", "interleaved", "machine", "ratio_spread", "verdict"]


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


def ratio_spread(slow: Timing, fast: Timing) -> str:
    """The ratio of medians, with the range of the ratios of paired runs."""
    pairs = [a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]
    return f"{slow.median / fast.median:.1f}x ({min(pairs):.1f}-{max(pairs):.1f})"


def verdict(label: str, value: float, bound: float, at_most: bool = False) -> str:
    """A line that says whether a figure holds."""
    holds = value <= bound if at_most else value >= bound
    sign = "at most" if at_most else "at least"
    return f"{'holds ' if holds else 'FAILS '} {label}: {value:.3g} ({sign} {bound:g})"
