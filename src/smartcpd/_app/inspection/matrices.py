"""Tables that are matrices: one column names the rows, and the others hold numbers."""

from __future__ import annotations

from collections.abc import Sequence

from smartcpd._app.inspection.facts import (
    DATES,
    FEW,
    LATITUDE,
    LONGITUDE,
    MANY,
    TIME_PARTS,
    UNIQUE,
    Facts,
)
from smartcpd._app.inspection.plan import Plan, split_time
from smartcpd._app.inspection.wide import FEWEST_COLUMNS
from smartcpd._data.tables.columns import Family


def matrix_plan(found: Sequence[Facts]) -> Plan | None:
    """Melt a table of which one column names the rows and the others hold numbers; None if it is
    none.
    """
    inside = _columns(found)
    named = [f for f in _rows(found) if f not in inside]
    if len(inside) < FEWEST_COLUMNS or not named:
        return None
    melt = (inside[0].name, inside[-1].name, "column")
    dated = named[0].column.family in DATES
    # Nothing but the dates tells the rows apart, so that long periods would hide much.
    rows = split_time(named[0], MANY) if dated else [named[0].name]
    order = "day-first" if dated and named[0].column.doubt else ""
    return Plan([*rows, "column"], melt=melt, order=order)


def plain_matrix(found: Sequence[Facts]) -> Plan | None:
    """Melt a table that is little else than a matrix: a name, a date or a year of its own for each
    row, and numbers. Counting its rows, or adding up one of its columns, would tell nothing.
    """
    plan = matrix_plan(found)
    if plan is None or plan.melt is None:
        return None
    first, last, _ = plan.melt
    names = [facts.name for facts in found]
    inside = names.index(last) - names.index(first) + 1
    named = _rows(found)[0]
    others = [f for f in found if not f.names_rows and f is not named and not f.has_nothing]
    words = [f for f in others if f.column.family is Family.TEXT and f.as_mode() == "yes"]
    if 2 * inside <= len(others) or sum(f.different > FEW for f in words) >= FEW:
        return None
    unique = named.different == named.rows and not named.names_rows
    # Dates of many days are periods that have several rows.
    periods = named.column.family in DATES and split_time(named) != [named.name]
    return plan if unique and not periods else None


def _columns(found: Sequence[Facts]) -> list[Facts]:
    """Return the longest run of columns that hold numbers, other than those of rows, of dates and
    of places.
    """
    runs: list[list[Facts]] = [[]]
    labels = (TIME_PARTS, LATITUDE, LONGITUDE)
    for facts in found:
        labelling = facts.names_rows or any(words.search(facts.words) for words in labels)
        if facts.is_number and not labelling:
            runs[-1].append(facts)
        else:
            runs.append([])
    return max(runs, key=len)


def _rows(found: Sequence[Facts]) -> list[Facts]:
    """Return the columns that may name the rows of a matrix, the plainest first: names, dates and
    years, then what only numbers the rows.
    """
    usable = [f for f in found if f.is_usable]
    dates = [f for f in usable if f.column.family in DATES and f.different > UNIQUE * f.rows]
    unique = [f for f in usable if f.different == f.rows <= MANY]
    named = [f for f in unique if f.column.family is Family.TEXT]
    years = [f for f in unique if f.is_number and TIME_PARTS.search(f.words)]
    whole = [f for f in unique if f.names_rows or f.column.family is Family.WHOLE]
    numbers = [f for f in whole if f not in years]
    return [*(f for f in found if f in (*named, *dates, *years)), *numbers]
