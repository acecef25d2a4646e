"""Two columns of coordinates as one mode, whose rows are the cells of a grid where events are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smartcpd._data.tables.columns import Column
from smartcpd._data.tables.sql import identifier, literal, number
from smartcpd.errors import InvalidParameterError

PLUS, AT = "+", "@"
"""The sign between two columns that make one mode, as in 'lat+lon', and that before its width."""


@dataclass(frozen=True)
class Places:
    """A mode of cells: its name, the columns north and east, and how wide a cell is."""

    name: str
    north: str
    east: str
    width: str

    def sql(self, columns: Mapping[str, Column]) -> str:
        """SQL of the middle of a cell, such as '41.85, -87.65'; NULL where a coordinate is
        missing.
        """
        width = float(self.width)
        digits = len(self.width.partition(".")[2].rstrip("0")) + 1
        # A number that is a multiple of the width, but for rounding, begins its cell.
        north, east = (
            f"(floor({columns[name].real()} / {number(width)} + 1e-9) + 0.5) * {number(width)}"
            for name in (self.north, self.east)
        )
        pattern = literal(f"{{:.{digits}f}}, {{:.{digits}f}}")
        there = f"({north}) + ({east}) IS NOT NULL"
        text = f"format({pattern}, {north}, {east})"
        return f"CASE WHEN {there} THEN {text} END AS {identifier(self.name)}"


def told_by(names: Sequence[str], columns: Iterable[str]) -> list[str]:
    """Return the columns that names of modes tell of: both of a pair."""
    there = set(columns)
    pairs = (
        [name] if name in there else [part.strip() for part in name.split(PLUS)] for name in names
    )
    return [name for pair in pairs for name in pair]


def places_in(
    names: Sequence[str], bins: Mapping[str, Any] | None, columns: Sequence[str]
) -> list[Places]:
    """Return the modes that name two columns of the table, joined by a plus."""
    found = []
    for name in names:
        pair, _, own = name.rpartition(AT) if AT in name else (name, "", "")
        parts = [part.strip() for part in pair.split(PLUS)]
        if name in columns or pair in columns or len(parts) != 2 or not set(parts) <= set(columns):
            continue
        given = (bins or {}).get(name, own) if isinstance(bins or {}, Mapping) else own
        width = str(given).strip()
        if not re.fullmatch(r"\d+|\d*\.\d+", width) or not float(width) > 0:
            raise InvalidParameterError(
                f"Mode {name!r} joins two coordinates and needs the width of its cells in degrees, "
                f"as in bins={{{pair!r}: '0.01'}}; got {given or 'none'!r}."
            )
        found.append(Places(name, parts[0], parts[1], width))
    return found
