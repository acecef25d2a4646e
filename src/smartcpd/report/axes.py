"""Ticks of an axis: where they are, and their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smartcpd._data.labels import MONTHS

Tick = tuple[float, str]


def number_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers between two others."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return powers of ten between two positive numbers, every one or every few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / count))
    found = [10.0**k for k in range(first, last + 1, step)]
    return found if len(found) > 1 else [low, high]


def time_ticks(times: np.ndarray, count: int = 6) -> list[Tick]:
    """Return beginnings of years, months, days or hours as (seconds since 1970, text)."""
    low, high = (t.astype("datetime64[s]") for t in (times.min(), times.max()))
    for unit, steps in (("Y", (1, 2, 5, 10, 20, 50)), ("M", (1, 2, 3, 6))):
        for step in steps:
            ticks = _beginnings(low, high, unit, step)
            if 3 <= len(ticks) <= count:
                return _calendar_texts(ticks, unit)
    for seconds in (14 * 86400, 7 * 86400, 2 * 86400, 86400, 43200, 21600, 10800, 3600, 900, 60, 1):
        first = -(-int(low.astype("int64")) // seconds) * seconds
        found = np.arange(first, int(high.astype("int64")) + 1, seconds)
        if found.size >= 2 and (found.size >= 3 or seconds == 1):
            found = found[:: max(1, -(-found.size // count))]
            return [(float(t), _clock_text(t, seconds)) for t in found.tolist()]
    return [(float(low.astype("int64")), str(low).replace("T", " "))]


def spread_labels(labels: Sequence[str], room: float, letter: float = 6.2) -> list[int]:
    """Return which of evenly spaced labels fit side by side: every one, every second, ..."""
    widest = max(map(len, labels), default=1) * letter + 8
    fit = max(1, int(room / widest))
    steps = (1, 2, 3, 4, 6, 8, 12, 24)
    step = next((s for s in steps if len(labels) / s <= fit), -(-len(labels) // fit))
    return list(range(0, len(labels), step))


def _beginnings(low: np.datetime64, high: np.datetime64, unit: str, step: int) -> list[Any]:
    first, last = (int(t.astype(f"datetime64[{unit}]").astype("int64")) for t in (low, high))
    # Years are counted from 1970, an offset that steps of 20 would keep.
    shift = 1970 if unit == "Y" else 0
    start = -(-(first + shift) // step) * step - shift
    found = np.arange(start, last + 1, step).astype(f"datetime64[{unit}]")
    return [t for t in found if low <= t.astype("datetime64[s]") <= high]


def _calendar_texts(ticks: list[Any], unit: str) -> list[Tick]:
    out = []
    for k, tick in enumerate(ticks):
        text = str(tick)
        if unit == "M":
            year, month = text.split("-")
            text = MONTHS[int(month) - 1] + (f" {year}" if k == 0 or month == "01" else "")
        out.append((float(tick.astype("datetime64[s]").astype("int64")), text))
    return out


def _clock_text(seconds: int, step: int) -> str:
    moment = np.datetime64(seconds, "s")
    day, clock = str(moment).split("T")
    _, month, number = day.split("-")
    date = f"{int(number)} {MONTHS[int(month) - 1]}"
    if step >= 86400:
        return date
    return date if clock == "00:00:00" else clock[:5] if step >= 60 else clock
