"""How things are measured: side by side, several times, medians and spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from smartcpd._app.paper.machine import machine

__all__ = ["Timing", "interleaved", "machine"]


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


def interleaved(
    tasks: dict[str, Callable[[], object]],
    repeats: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time each task ``repeats`` times in turn, so that a noisy moment hits all of them; tasks of
    one thread can be timed by the processor's clock.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(repeats):
        for name, task in tasks.items():
            began = clock()
            task()
            seconds[name].append(clock() - began)
    return {name: Timing(values) for name, values in seconds.items()}
