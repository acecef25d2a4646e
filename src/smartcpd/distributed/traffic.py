"""How much a fit and its workers exchange, and how long that takes."""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from smartcpd._common.memory import readable
from smartcpd._data.storage.entries import Entries


@dataclass
class Traffic:
    """Sums over all rounds of questions and answers so far."""

    rounds: int = 0
    sent: int = 0
    """Bytes of arrays that were sent to workers."""
    received: int = 0
    """Bytes of arrays that came from workers."""
    seconds: float = 0.0
    computed: float = 0.0
    """The part of ``seconds`` in which the slowest worker of each round loaded or computed."""

    @property
    def share(self) -> float:
        """The share of the time that was communication."""
        return 1 - self.computed / max(self.seconds, 1e-9)

    def add_round(self, began: float, computed: float) -> None:
        """Count a round that began at some time and in which workers computed for so long."""
        self.rounds += 1
        self.seconds += time.perf_counter() - began
        self.computed += computed

    def remark(self, where: str, cost: str) -> str:
        """Return how many rounds there were, and which share of the time their cost was."""
        each = readable((self.sent + self.received) / max(self.rounds, 1))
        return (
            f"On {where}: {self.rounds} rounds with {each} each, "
            f"{100 * self.share:.0f} % of their time {cost}."
        )

    def since(self, before: Traffic) -> Traffic:
        """Return what has been added since an earlier state."""
        return Traffic(*(a - b for a, b in zip(astuple(self), astuple(before), strict=True)))


def size(value: Any) -> int:
    """Return the bytes of the arrays in something that is sent."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list | tuple):
        return sum(map(size, value))
    if isinstance(value, Entries):
        return size(value.columns) + size(value.values)
    return 0
