"""The parts of a command that makes a tensor of a table, and how dates and values go into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from smartcpd._app.inspection.facts import AMOUNT, CODE, FEW, MOST_LOST, Facts
from smartcpd._data.tables.columns import Family
from smartcpd._data.tables.periods import MOST_USUAL_BINS, Period
from smartcpd._data.tables.remarks import quoted
from smartcpd._data.tables.wishes import joined

FOOTNOTES = 3
"""Number of lines without a value that may be something else than rows."""
EMPTY = 2
"""How many times as many periods as different dates there may be, so that most are not empty."""


@dataclass
class Plan:
    """The parts of a command that makes a tensor of a table."""

    modes: list[str]
    value: str | None = None
    bins: dict[str, str] = field(default_factory=dict)
    top: dict[str, int] = field(default_factory=dict)
    melt: tuple[str, str, str] | None = None
    """The first and the last column of a wide table, and the name of the mode they become."""
    order: str = ""
    """The order of day and month, where it cannot be told."""
    agg: str = ""
    """What a cell holds, where its rows should not be added up."""
    absent: str = ""
    """What cells without a value are, where it is not what they are by default."""
    where: str = ""
    """The condition that leaves out the few values below zero."""

    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {"modes": self.modes}
        if self.value:
            found["value"] = self.value
        if self.bins:
            found["bins"] = self.bins
        if self.top:
            found["top"] = self.top
        if self.melt:
            first, last, name = self.melt
            found["melt"] = {name: f"{first}:{last}"}
        if self.order:
            found["date_format"] = self.order
        if self.agg:
            found["agg"] = self.agg
        if self.absent:
            found["absent"] = self.absent
        if self.where:
            found["where"] = self.where
        return found

    def words(self) -> list[str]:
        words = ["--modes", joined(self.modes)]
        if self.melt:
            first, last, name = self.melt
            words += ["--melt", f"{joined([f'{first}:{last}'])}={name}"]
        if self.value:
            words += ["--value", self.value]
        for option, chosen in (("--bin", self.bins), ("--top", self.top)):
            if chosen:
                words += [option, joined(f"{name}={what}" for name, what in chosen.items())]
        if self.order:
            words += ["--date-format", self.order]
        if self.agg:
            words += ["--agg", self.agg]
        if self.absent:
            words += ["--absent", self.absent]
        if self.where:
            words += ["--where", self.where]
        return words


def say_of_value(plan: Plan, found: Sequence[Facts], *, one_row: bool = False) -> None:
    """Say of the value whether its mean is meant, unless cells have ``one_row`` each, and what
    cells without one are, and leave out the few that are below zero.
    """
    plan.absent = _absent(plan.value, found)
    if any(f.name == plan.value and f.is_intensity for f in found):
        # Cells without a row are missing where the mean is taken, or where numbers are real.
        whole = any(f.name == plan.value and f.column.family is not Family.REAL for f in found)
        plan.agg = "" if one_row else "mean"
        plan.absent = "missing" if one_row and whole else ""
    if any(f.name == plan.value and f.about_negatives for f in found):
        plan.where = f"{quoted(str(plan.value))} >= 0"


def _absent(value: str | None, found: Sequence[Facts]) -> str:
    """Return "missing" where rows without a value would make cells of counts zero."""
    facts = next((f for f in found if f.name == value), None)
    counts = facts is not None and facts.column.family is not Family.REAL
    most = max(MOST_LOST * facts.rows, FOOTNOTES) if facts else 0
    return "missing" if facts and counts and facts.missing > most else ""


def plainest_first(facts: Facts) -> tuple[bool, int]:
    return not facts.is_amount, -facts.different


def plainness(facts: Facts) -> tuple[bool, bool, int]:
    """Say how plainly a column is the value: by its name, and by what else the name says."""
    named = bool(AMOUNT.search(facts.words))
    return named, not CODE.search(facts.words), -len(facts.name) if named else 0


def split_time(facts: Facts, most: int = MOST_USUAL_BINS) -> list[str]:
    """Return modes for dates: one that goes on, of ``most`` periods, and the hour of the day."""
    name = facts.name
    if facts.column.family is Family.CLOCK:
        return [f"{name}@1h"]
    first, last = _moment(facts.low), _moment(facts.high)
    spec = next(
        (
            spec
            for spec in ("1d", "1w", "1mo", "1y")
            for period in [Period.parse(spec)]
            if period and first and last
            for bins in [period.bins_between(first, last)]
            if bins <= most and (spec == "1y" or bins <= EMPTY * facts.different)
        ),
        "1mo",
    )
    if facts.timed:
        one_day = first and last and (last - first).days < FEW
        return [f"{name}@{'15min' if one_day else spec}", *([] if one_day else [f"{name}@hour"])]
    plain = facts.column.step or (spec == "1d" and facts.column.family is Family.DATE)
    return [name] if plain else [f"{name}@{spec}"]


def _moment(text: str | None) -> datetime | None:
    """A point in time as Python has it; None for none, and for years before 1 or beyond 9999."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
