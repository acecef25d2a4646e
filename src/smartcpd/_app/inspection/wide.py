"""Wide tables: columns that are the labels of a mode, and what names their rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smartcpd._app.inspection.facts import MANY, Facts
from smartcpd._data.tables.calendars import NAMES, formats_of
from smartcpd._data.tables.columns import Family

CALENDAR = ("month", "year", "weekday", "date")
"""What names of columns may be labels of, whatever their order."""
_NUMBERED = re.compile(r"([^\W\d_]\D*)\d+")
FEWEST_COLUMNS = 3
"""The least number of columns that could be the rows of a mode, whatever their names."""


def wide_columns(found: Sequence[Facts]) -> tuple[str, str, str] | None:
    """Return columns that look like the labels of a mode, and what the mode could be called."""
    runs: list[list[tuple[Facts, str]]] = [[]]
    for facts in found:
        kind = _kind_of_name(facts.name)
        if not (kind and (facts.is_number or facts.has_nothing)):
            runs.append([])
        elif runs[-1] and runs[-1][-1][1] != kind:
            runs.append([(facts, kind)])
        else:
            runs[-1].append((facts, kind))
    longest = max(runs, key=len)
    if len(longest) < 4:
        return None
    kind = longest[0][1]
    inside = [facts for facts, _ in longest]
    if kind not in CALENDAR:
        others = any(facts.is_value for facts in found if facts not in inside)
        # Readers number columns that have the same name, which makes no mode of them.
        repeated = any(facts.name.lower() == kind for facts in found)
        if others or repeated or not _are_in_turn([facts.name for facts in inside]):
            return None
    return inside[0].name, inside[-1].name, kind


def _are_in_turn(names: Sequence[str]) -> bool:
    """Whether names end with one number after the other, as q1, q2, q3 do."""
    numbers = [int(re.sub(r".*\D", "", name.strip())) for name in names]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _kind_of_name(name: str) -> str | None:
    """Return what a name is a label of: a month, a year, a date, or one of a row of numbers."""
    lowered = name.strip().lower()
    if lowered[:3] in NAMES and re.fullmatch(r"[a-z]{3,9}\.?", lowered):
        return "month"
    if re.fullmatch(r"[xy]?(1[89]|20|21)\d\d", lowered):
        return "year"
    if re.fullmatch(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*", lowered):
        return "weekday"
    if formats_of(name):
        return "date"
    numbered = _NUMBERED.fullmatch(name.strip())
    return numbered[1].strip("_- .").lower() if numbered else None


def labels_of_rows(usable: Sequence[Facts], labels: Sequence[Facts]) -> list[Facts]:
    """Return the labels of the rows of a wide table: one that names each row, or several."""
    kinds = (Family.TEXT, Family.WHOLE)
    unique = [f for f in usable if f.different == f.rows <= MANY and f.column.family in kinds]
    named = [f for f in unique if f.column.family is Family.TEXT] or unique
    return named[:1] or [f for f in labels if f.column.family is not Family.REAL]
