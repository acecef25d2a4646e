"""Tables that are filled-in grids: columns of which every combination has one row, as in panels of
firms by year or plots by treatment.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

from smartcpd._app.inspection.facts import (
    CODE,
    DATES,
    FEW,
    FEW_NUMBERS,
    MOST_LOST,
    TIME_PARTS,
    UNIQUE,
    Facts,
)
from smartcpd._app.inspection.plan import Plan, plainest_first, plainness, say_of_value, split_time
from smartcpd._data.tables.columns import Family
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import SOURCE, one_row

MOST_MODES = 4
MOST_COMPARED = 10
"""How many columns are compared with each other."""
MOST_SIDES = 14
"""How many columns are tried as sides of a grid."""
MOST_ROWS = 2_000_000
FEWEST_ROWS = 8
"""Fewer rows make a grid by chance."""
FILLED = 0.5
"""The share of its cells that a grid has rows of, at least."""
ALIKE = 1.1
"""How many more pairs than labels there may be for one label to follow from the other."""


def grid_plan(source: Source, found: Sequence[Facts], usable: Sequence[Facts]) -> Plan | None:
    """The plan of a table that has one row of every cell, and numbers in it; None if it has not."""
    grid = _grid_of(source, usable)
    numbers = [f for f in found if f.is_number_of_cells and f not in grid]
    numbers = [f for f in numbers if not CODE.search(f.words) and not TIME_PARTS.search(f.words)]
    numbers = sorted(numbers, key=plainest_first)[:MOST_COMPARED]
    told = _following(source, grid, numbers)
    values = [f for f in found if f in numbers and f not in told]
    if not grid or not values:
        return None
    amounts = [f for f in values if f.is_value]
    best = max(amounts, key=plainness) if amounts else min(values, key=plainest_first)
    plan = Plan([], value=best.name)
    for facts in found:
        if facts in grid:
            dated = facts.column.family in (*DATES, Family.CLOCK)
            plan.modes += split_time(facts) if dated else [facts.name]
            plan.order = plan.order or ("day-first" if facts.column.doubt else "")
    # Periods of dates have several rows.
    say_of_value(plan, found, one_row={*plan.modes} == {facts.name for facts in grid})
    return plan


def _grid_of(source: Source, usable: Sequence[Facts]) -> list[Facts]:
    """Return the columns of which every combination has one row and most have one; empty if there
    are none. Two columns are better than three: others then follow from them.
    """
    rows = usable[0].rows if usable else 0
    if not FEWEST_ROWS <= rows <= MOST_ROWS:
        return []
    sides = sorted((f for f in usable if _may_be_side(f)), key=_plainest_side)[:MOST_SIDES]
    for order in range(FEW, MOST_MODES + 1):
        fitting = [
            chosen
            for chosen in combinations(sides, order)
            if (1 - MOST_LOST) * rows <= prod(f.different for f in chosen) <= rows / FILLED
        ]
        counts = _combinations(source, fitting)
        grids = [
            (-count, prod(f.different for f in chosen), i)
            for i, (chosen, count) in enumerate(zip(fitting, counts, strict=True))
            if count >= (1 - MOST_LOST) * rows
        ]
        if grids:
            return list(fitting[min(grids)[-1]])
    return []


def _following(source: Source, grid: Sequence[Facts], values: Sequence[Facts]) -> list[Facts]:
    """Return the values that stay the same along a side of a grid, as the area of a country does
    over the years.
    """
    faces = [[f for f in grid if f is not side] for side in grid]
    pairs = [(i, value) for value in values for i in range(len(faces))]
    counts = _combinations(source, [*faces, *([*faces[i], value] for i, value in pairs)])
    told = {
        value.name
        for (i, value), count in zip(pairs, counts[len(faces) :], strict=True)
        if count <= ALIKE * counts[i]
    }
    return [value for value in values if value.name in told]


def _may_be_side(facts: Facts) -> bool:
    """Whether the values of a column repeat as the labels of a grid do."""
    few = FEW_NUMBERS if facts.column.family is Family.REAL else facts.rows
    known = facts.column.family is not Family.OTHER and not facts.is_amount
    return known and FEW <= facts.different <= min(UNIQUE * facts.rows, few)


def _plainest_side(facts: Facts) -> int:
    """Names and dates before numbers that are labels, and these before other numbers."""
    if facts.column.family in (Family.TEXT, *DATES):
        return 0
    if CODE.search(facts.words) or TIME_PARTS.search(facts.words):
        return 1
    return 3 if facts.column.family is Family.REAL else 2


def _combinations(source: Source, chosen: Sequence[Sequence[Facts]]) -> list[int]:
    """Return how many different combinations of columns there are, for each choice of them."""
    if not chosen:
        return []
    counts = [
        f"count(DISTINCT ({', '.join(f.column.sql for f in some)}))"
        f" FILTER ({' AND '.join(f'{f.column.sql} IS NOT NULL' for f in some)})"
        for some in chosen
    ]
    return list(one_row(source.sql(f"SELECT {', '.join(counts)} FROM {SOURCE}")))
