"""Which workers still give a sign of life."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

SILENCE = 10.0
"""A worker that the scheduler has not heard from for so many seconds is taken to stand still; those
that are alive report several times a second, or once in a few seconds on a large cluster."""


class Heartbeats:
    """When the scheduler last heard from each worker, by the clock of this process."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Any, float]] = {}

    def note(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in what the scheduler says of its workers now."""
        now = time.monotonic()
        for address, said in workers.items():
            heard = said.get("last_seen")
            before = self._last.get(address)
            if heard is None or before is None or before[0] != heard:
                self._last[address] = (heard, now)

    def is_silent(self, address: str) -> bool:
        """Whether a worker has given no sign of life for long."""
        known = self._last.get(address)
        return known is not None and time.monotonic() - known[1] > SILENCE
