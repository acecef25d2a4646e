"""What a page calls modes and components."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from smartcpd._data.labels import Kind, Mode

BINS = {"s": "second", "min": "minute", "h": "hour", "d": "day", "w": "week", "mo": "month"}
BINS |= {"y": "year"}


def said(modes: Sequence[Mode]) -> list[str]:
    """The names of modes as people say them: ``time@1d`` is a day, unless there are two."""
    short = [_bin_name(mode.name) for mode in modes]
    taken = Counter(name.lower() for name in short)
    return [
        name if taken[name.lower()] == 1 else mode.name.replace("@", ", ")
        for name, mode in zip(short, modes, strict=True)
    ]


def _bin_name(name: str) -> str:
    """The name of the bin that a column was cut into, where the name of a mode ends with one."""
    column, at, bin_ = name.rpartition("@")
    if not (column and at):
        return name
    length = re.fullmatch(r"(\d*)\s*([a-z]+)", bin_)
    if length is None:  # a number of bins
        return column
    count, unit = length.groups()
    if unit == "q" or not unit:
        return column
    word = BINS.get(unit, unit)
    return word if count in ("", "1") else f"{count} {word}s"


def named(modes: Sequence[Mode]) -> tuple[Mode, ...]:
    """The modes under the names that people say."""
    names = said(modes)
    return tuple(Mode(n, m.labels, m.kind) for n, m in zip(names, modes, strict=True))


def with_given(titles: list[str], given: Mapping[int, str]) -> list[str]:
    """The names of components, the user's in place of our own; they are numbered from 1."""
    return [given.get(number, title) for number, title in enumerate(titles, start=1)]


def is_place(mode: Mode) -> bool:
    """Whether the rows of a mode are places by their latitude and longitude, as "41.8, -87.6"."""
    if mode.kind is not Kind.CATEGORY or not len(mode) or len(mode) > MOST_PLACES:
        return False
    found = [place_of(str(label)) for label in mode.labels[: min(len(mode), 200)].tolist()]
    return sum(place is not None for place in found) > 0.9 * len(found)


MOST_PLACES = 5000
NUMBER = r"[-+]?\d{1,3}(?:\.\d+)?"
PLACE = re.compile(rf"\D*?({NUMBER})\s*[,;/ ]\s*({NUMBER})\D*")


def place_of(label: str) -> tuple[float, float] | None:
    """Read a latitude and a longitude; None if a label is no such pair."""
    found = PLACE.fullmatch(label.strip())
    if found is None:
        return None
    north, east = float(found[1]), float(found[2])
    return (north, east) if abs(north) <= 90 and abs(east) <= 180 else None


def coordinates(modes: Sequence[Mode]) -> tuple[int, int] | None:
    """The numbers of the modes that are latitude and longitude, if there are both."""

    def find(pattern: str) -> int | None:
        found = [
            n
            for n, mode in enumerate(modes)
            if mode.kind is Kind.NUMBER
            and len(mode) > 2
            and re.search(pattern, mode.name, re.IGNORECASE)
        ]
        return found[0] if len(found) == 1 else None

    north = find(r"(^|[^a-z])lat(itude)?([^a-z]|$)")
    east = find(r"(^|[^a-z])(lon|lng|long)(itude)?([^a-z]|$)")
    return None if north is None or east is None else (north, east)
