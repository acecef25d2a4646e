"""Wide tables: columns that are labels of a mode become rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.sql import identifier, listed, literal
from smartcpd.errors import InvalidParameterError

VALUE = "value"
"""The name of the column that gets the numbers."""
NUMBERS = (Family.WHOLE, Family.REAL)


@dataclass(frozen=True)
class Melted:
    """Columns that become a mode, and the names of the two columns that take their place."""

    name: str
    columns: tuple[str, ...]
    value: str

    def offered(self, stored: Mapping[str, Column]) -> dict[str, Column]:
        """Return the columns that the table has afterwards."""
        kept = {name: c for name, c in stored.items() if name not in self.columns}
        new = Column(self.name, "VARCHAR"), Column(self.value, self._type(stored))
        return kept | {column.name: column for column in new}

    def query(self, raw: str, stored: Mapping[str, Column]) -> str:
        """SQL of the table in which every row is one number."""
        kind = self._type(stored)
        names = ", ".join(map(literal, self.columns))
        values = ", ".join(f"CAST({identifier(name)} AS {kind})" for name in self.columns)
        without = ", ".join(map(identifier, self.columns))
        return (
            f"SELECT * EXCLUDE ({without}), unnest([{names}]) AS {identifier(self.name)}, "
            f"unnest([{values}]) AS {identifier(self.value)} FROM {raw}"
        )

    def _type(self, stored: Mapping[str, Column]) -> str:
        numeric = all(stored[name].family in NUMBERS for name in self.columns)
        return "DOUBLE" if numeric else "VARCHAR"


def melting(melt: Mapping[str, Any] | None, stored: Mapping[str, Column]) -> Melted | None:
    """Return what the user wants to be melted, checked against the columns of the table."""
    if not melt:
        return None
    ((name, given),) = melt.items()
    columns = _columns(given, list(stored))
    kept = [column for column in stored if column not in columns]
    if not name or name.lower() in {column.lower() for column in kept}:
        raise InvalidParameterError(
            f"melt makes a column {name!r}, which the table has already; choose another name."
        )
    value = VALUE
    while value in (*kept, name):
        value += "_"
    return Melted(name, tuple(columns), value)


def _columns(given: str | Iterable[str], stored: Sequence[str]) -> list[str]:
    """Return the columns that 'first:last' or a list names."""
    names = [given] if isinstance(given, str) else [str(name) for name in given]
    found: list[str] = []
    for name in names:
        first, colon, last = name.partition(":")
        ends = [name, name] if name in stored or not colon else [first.strip(), last.strip()]
        for end in ends:
            if end not in stored:
                raise InvalidParameterError(
                    f"melt names column {end!r}, which is not there; columns are {listed(stored)}. "
                    "Write a range as 'FIRST:LAST'."
                )
        start, stop = (stored.index(end) for end in ends)
        found += stored[min(start, stop) : max(start, stop) + 1]
    if len(set(found)) < 2:
        raise InvalidParameterError(f"melt must name at least two columns; got {listed(found)}.")
    return list(dict.fromkeys(found))
