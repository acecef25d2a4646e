"""A command to begin with: modes that tell something, tried before it is suggested."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smartcpd._app.inspection.facts import (
    CODE,
    DATES,
    FEW,
    KEPT,
    LATITUDE,
    LONGITUDE,
    MOST_LOST,
    TIME_PARTS,
    UNIQUE,
    Facts,
)
from smartcpd._app.inspection.grids import ALIKE, MOST_COMPARED, MOST_MODES, MOST_ROWS, grid_plan
from smartcpd._app.inspection.matrices import matrix_plan, plain_matrix
from smartcpd._app.inspection.plan import (
    Plan,
    plainest_first,
    plainness,
    say_of_value,
    split_time,
)
from smartcpd._app.inspection.wide import FEWEST_COLUMNS, labels_of_rows, wide_columns
from smartcpd._data.storage.parts import stored_cells
from smartcpd._data.tables.build import from_table
from smartcpd._data.tables.columns import Family
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import SOURCE, one_row
from smartcpd.errors import SmartCPDError

SOME_RANK = ("--rank", "3")
OTHER_RANKS = "--rank auto in its place finds the number of components, which takes longer."
REPEATED = 3
"""How often labels must occur on average for it to mean something that another one follows."""
DATE_PARTS = re.compile(r"(?i)\b(year|month|week|day|weekday|quarter|yr|yyyy|date)\b")
"""Names of columns that say again what whole days say."""


def suggested(
    path: str,
    file: str,
    plan: Plan,
    found: Sequence[Facts],
    reading: Mapping[str, Any],
    words: Sequence[str],
) -> tuple[str | None, dict[str, Any] | None, list[str]]:
    """Return a command that works, what it makes of the table, and sentences.

    ``path`` is how the user calls the file, and ``file`` where it is.
    """
    trouble = ""  # the first error says most: later ones are of what is left of the plan
    while len(plan.modes) > 1:
        try:
            X = from_table(file, **(dict(reading) | plan.parameters()))
        except SmartCPDError as error:
            trouble = trouble or str(error)
            plan.modes.remove(_weakest(plan, found))
            continue
        values = stored_cells(X.tensor)[1]
        command = shlex.join(["smartcpd", "fit", path, *plan.words(), *words, *SOME_RANK])
        tried = {
            "shape": list(X.shape),
            "nonzeros": values.size,
            "total": float(values.sum(dtype=np.float64)),
            "notes": list(X.notes),
        }
        return command, tried, [f"To begin with: {command}", OTHER_RANKS]
    if trouble:
        return None, None, [f"No command can be suggested: {trouble}"]
    if sum(facts.different >= FEW for facts in found) < FEW:
        return None, None, ["Fewer than two columns have two values or more, and a fit needs two."]
    return None, None, ["Fewer than two columns could be modes; choose bins for others."]


def _weakest(plan: Plan, found: Sequence[Facts]) -> str:
    """Return the mode that is given up if a plan does not work: the one that misses most."""
    missing = {facts.name: facts.missing for facts in found}

    def weight(i: int) -> tuple[int, int]:
        name = plan.modes[i]
        return missing.get(name, missing.get(name.rpartition("@")[0], 0)), i

    return plan.modes[max(range(len(plan.modes)), key=weight)]


def planned(source: Source, found: Sequence[Facts]) -> Plan:
    """Choose modes and a value among the columns of a table."""
    melted = source.melted
    wide = wide_columns(found) if melted is None else None
    inside: set[str] = set()
    plan = Plan([])
    if wide is not None:
        names = [facts.name for facts in found]
        first, last, _ = wide
        inside = set(names[names.index(first) : names.index(last) + 1])
        plan.melt = wide
    usable = [facts for facts in found if facts.is_usable and facts.name not in inside]
    if wide is None and melted is None:
        plain = grid_plan(source, found, usable) or plain_matrix(found)
        if plain is not None:
            return plain
    coordinates = [] if wide or melted else _coordinates(usable)
    amounts = [f for f in usable if f.is_value]
    if melted is None and wide is None and amounts:
        plan.value = max(amounts, key=plainness).name
    labels = [f for f in usable if f.as_mode() == "yes" and not f.is_amount]
    if melted is None and wide is None and plan.value is None and not coordinates:
        plan.value = _told_by_labels(source, found, usable, labels)
    labels = [f for f in labels if f.name != plan.value]
    if len(labels) >= FEWEST_COLUMNS and all(f.is_binary for f in labels) and wide is None:
        answers = matrix_plan(found) if melted is None else None
        if answers is not None:
            return answers
    say_of_value(plan, found)
    if wide is not None:
        labels = labels_of_rows(usable, labels)
    times = [f for f in usable if f.column.family in DATES]
    clocks = [f for f in usable if f.column.family is Family.CLOCK]
    chosen = times[:1] or clocks[:1]
    if any(f.column.doubt for f in chosen):
        plan.order = "day-first"
    split = len(chosen) == 1 and chosen[0].timed > 0
    parts = TIME_PARTS if split else DATE_PARTS
    if chosen and chosen[0].column.family in DATES:
        labels = [f for f in labels if not parts.search(f.words)]
    others = len(chosen) + len(coordinates) + (wide is not None)
    sure = [f for f in labels if not f.is_doubtful]
    if wide is None and others + len(sure) >= FEW:
        labels = sure
    independent = _independent(source, labels)
    if others + len(independent) >= FEW:
        labels = independent
    room = MOST_MODES - split - others
    best = sorted(labels, key=_best_to_read)[: max(room, 0)]
    for facts in found:
        if facts in chosen:
            plan.modes += split_time(facts)
        elif facts in best or facts in coordinates:
            plan.modes.append(facts.name)
    for facts in coordinates:
        plan.bins[facts.name] = facts.grid_width
    if wide is not None:
        plan.modes.append(wide[2])
    if melted is not None and melted.name not in plan.modes:
        plan.modes.append(melted.name)
    if len(plan.modes) < 2:
        _add_large(plan, usable)
    if len(plan.modes) < 2 and melted is None:
        return matrix_plan(found) or plan
    return plan


def _told_by_labels(
    source: Source, found: Sequence[Facts], usable: Sequence[Facts], labels: Sequence[Facts]
) -> str | None:
    """Return the column of numbers of which every combination of the labels has one, as in a table
    that is aggregated already; None if there is none.
    """
    numbers = [f for f in found if f.is_number_of_cells]
    times = [f for f in usable if f.column.family in (*DATES, Family.CLOCK)]
    for value in sorted(numbers, key=plainest_first)[:MOST_COMPARED]:
        others = [f for f in (*times, *labels) if f is not value]
        others = [f for f in others if f.column.family is not Family.REAL][:MOST_COMPARED]
        if CODE.search(value.words) or len(others) < FEW or value.rows > MOST_ROWS:
            continue
        if any(f.different > UNIQUE * f.rows for f in others):
            continue
        listed = ", ".join(f.column.sql for f in others)
        there = " AND ".join(f"{f.column.sql} IS NOT NULL" for f in others)
        query = f"SELECT count(DISTINCT ({listed})), count(*) FROM {SOURCE} WHERE {there}"
        count, rows = one_row(source.sql(query))
        if count >= (1 - MOST_LOST) * rows:
            return value.name
    return None


def _add_large(plan: Plan, usable: Sequence[Facts]) -> None:
    """Add the most frequent labels of columns that have many."""
    for facts in usable:
        if facts.as_mode().startswith("with --top") and len(plan.modes) < MOST_MODES:
            plan.modes.append(facts.name)
            plan.top[facts.name] = KEPT


def _best_to_read(facts: Facts) -> tuple[bool, int]:
    """Order labels: those that tell most before others, and before these too many to read."""
    return facts.different > KEPT, -facts.different


def _coordinates(usable: Sequence[Facts]) -> list[Facts]:
    latitudes = [f for f in usable if f.is_coordinate(LATITUDE, 90)]
    longitudes = [f for f in usable if f.is_coordinate(LONGITUDE, 180)]
    return [latitudes[0], longitudes[0]] if latitudes and longitudes else []


def _independent(source: Source, labels: Sequence[Facts]) -> list[Facts]:
    """Leave out labels that follow from others: codes beside names, regions beside places."""
    found = sorted(labels, key=_best_to_read)[:MOST_COMPARED]
    found.sort(key=lambda f: -f.different)
    pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1 :]]
    if not pairs or found[0].rows > MOST_ROWS:
        return found
    counts = [f"count(DISTINCT ({a.column.sql}, {b.column.sql}))" for a, b in pairs]
    together = one_row(source.sql(f"SELECT {', '.join(counts)} FROM {SOURCE}"))
    out: set[str] = set()
    for (a, b), count in zip(pairs, together, strict=True):
        by_chance = REPEATED * a.different > a.rows
        too_many = b.different <= KEPT < a.different  # the others are the better mode
        if by_chance or too_many or count > ALIKE * a.different or a.name in out:
            continue
        same = count <= ALIKE * b.different
        named = re.search(r"(?i)\bname\b", b.words) and not re.search(r"(?i)\bname\b", a.words)
        out.add(a.name if same and named else b.name)
    return [facts for facts in found if facts.name not in out]
