"""A command to begin with: modes that tell something, tried before it is suggested."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from smartcpd._data.tables.build import from_table
from smartcpd._data.tables.calendars import NAMES, formats_of
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.periods import MOST_USUAL_BINS, Period
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import SOURCE, one_row
from smartcpd._data.tables.wishes import joined
from smartcpd.errors import SmartCPDError

FEW, MANY = 2, 5_000
"""A column with a number of labels between these makes a good mode as it is."""
KEPT = 500
MOST_MODES = 4
MOST_MISSING = 0.1
"""The share of missing values with which a column is still suggested as a mode."""
MOST_LOST = 0.01
"""The share of missing values with which a column of counts is still suggested as the value."""
MOST_COMPARED, MOST_ROWS_COMPARED = 10, 2_000_000
"""How many columns are compared with each other, and over how many rows at most."""
ALIKE = 1.1
"""How many more pairs than labels there may be for one label to follow from the other."""
REPEATED = 3
"""How often labels must occur on average for it to mean something that another one follows."""
FEW_NUMBERS = 50
"""Up to so many different real numbers may be labels."""
UNIQUE = 0.5
"""A column with more different values than this share of the rows identifies them."""
MOST_COLUMNS = 100
"""Number of columns of a grid that a width for coordinates aims at."""
EMPTY = 2
"""How many times as many periods as different dates there may be, so that most are not empty."""
DATES = (Family.DATE, Family.MOMENT)
LATITUDE = re.compile(r"(^|[^a-z])lat(itude)?([^a-z]|$)", re.IGNORECASE)
LONGITUDE = re.compile(r"(^|[^a-z])(lon|lng|long|longitude)([^a-z]|$)", re.IGNORECASE)
AMOUNT = re.compile(
    r"(^|[^a-z])(count|number of|num|n|no int|qty|quantity|amount|total|sum|value|price|cost|sales|"
    r"revenue|trips|visits|cases|deaths|hits|views|passengers|rainfall|volume|weight|score|rating|"
    r"measure(ment)?|freq(uency)?|duration|distance|temp(erature)?|population)s?([^a-z]|$)",
    re.IGNORECASE,
)
"""Names of columns that hold values rather than labels."""
CODE = re.compile(
    r"(^|[^a-z])(id|code|key|zip|postcode|zone|area|year|month|week|day|hour|weekday|line|row|index|"
    r"entry|number)([^a-z]|$)",
    re.IGNORECASE,
)
DATE_PARTS = re.compile(r"(?i)\b(year|month|week|day|weekday|quarter|yr|yyyy|date)\b")
TIME_PARTS = re.compile(
    r"(?i)\b(year|month|week|day|weekday|quarter|yr|yyyy|date|hour|hr|minute)\b"
)
"""Names of columns that say again what dates say."""
WIDTHS = ("10.0", "5.0", "1.0", "0.5", "0.1", "0.05", "0.01", "0.005", "0.001", "0.0005", "0.0001")


@dataclass(frozen=True)
class Facts:
    """What is known of a column of so many rows."""

    column: Column
    rows: int
    different: int
    missing: int
    low: str | None
    high: str | None
    middle: tuple[float | None, float | None]
    """The range of numbers without the five per cent at either end."""
    examples: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def words(self) -> str:
        """The name with blanks between its words."""
        return re.sub(r"[_\W]+", " ", re.sub(r"([a-z])([A-Z])", r"\1 \2", self.name))

    def is_coordinate(self, pattern: re.Pattern[str], most: float) -> bool:
        return (
            self.column.family is Family.REAL
            and bool(pattern.search(self.words))
            and self.low is not None
            and -most <= float(self.low) < float(self.high or 0) <= most
        )

    @property
    def is_usable(self) -> bool:
        return self.different >= FEW and self.missing <= MOST_MISSING * self.rows

    @property
    def is_amount(self) -> bool:
        """Whether it plainly holds values rather than labels."""
        if self.column.family not in (Family.WHOLE, Family.REAL):
            return False
        if LATITUDE.search(self.words) or LONGITUDE.search(self.words):
            return False
        named = bool(AMOUNT.search(self.words)) and not re.search(r"(?i)\bid\b", self.words)
        return named or (self.column.family is Family.REAL and self.different > FEW_NUMBERS)

    @property
    def is_value(self) -> bool:
        """Whether it could be what cells hold without rows being lost."""
        most = MOST_MISSING if self.column.family is Family.REAL else MOST_LOST
        return self.is_amount and self.different >= FEW and self.missing <= most * self.rows

    def as_mode(self) -> str:
        """Say how the column could be a mode."""
        family = self.column.family
        if self.different < FEW:
            return "tells nothing: one value" if self.different else "tells nothing: no value"
        if family in DATES:
            return "by --bin 1d, 1w, 1mo, weekday" + (", hour" if family is Family.MOMENT else "")
        if family is Family.CLOCK:
            return "by --bin 1h"
        if family is Family.OTHER:
            return "no"
        if self.is_coordinate(LATITUDE, 90) or self.is_coordinate(LONGITUDE, 180):
            return f"by --bin {self.grid_width}; or LAT+LON as one mode of cells"
        if family is Family.REAL:
            return "as --value; or --bin 20q"
        if self.different > UNIQUE * self.rows and self.different > FEW_NUMBERS:
            return "looks like an identifier"
        if self.is_amount:
            return "as --value; or --bin 20q"
        if self.different > MANY:
            return f"with --top {KEPT}" + ("; or --bin 20q" if family is Family.WHOLE else "")
        return "yes"

    @property
    def grid_width(self) -> str:
        """The width of bins that cut most of a coordinate's range into about a hundred."""
        low, high = self.middle
        if low is None or high is None:
            return "0.01"
        fitting = [w for w in WIDTHS if (high - low) / float(w) <= MOST_COLUMNS]
        return fitting[-1] if fitting else WIDTHS[0]


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
        return words


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
    trouble = ""
    while len(plan.modes) > 1:
        try:
            X = from_table(file, **(dict(reading) | plan.parameters()))
        except SmartCPDError as error:
            trouble = str(error)
            plan.modes.remove(_weakest(plan, found))
            continue
        used = int(getattr(X.tensor, "nnz", 0))
        command = shlex.join(["smartcpd", "fit", path, *plan.words(), *words])
        tried = {"shape": list(X.shape), "nonzeros": used, "notes": list(X.notes)}
        return command, tried, [f"To begin with: {command}"]
    why = f" {trouble}" if trouble else ""
    return None, None, [f"Fewer than two columns could be modes; choose bins for others.{why}"]


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
    wide = _wide(found) if melted is None else None
    inside: set[str] = set()
    plan = Plan([])
    if wide is not None:
        names = [facts.name for facts in found]
        first, last, _ = wide
        inside = set(names[names.index(first) : names.index(last) + 1])
        plan.melt = wide
    usable = [facts for facts in found if facts.is_usable and facts.name not in inside]
    coordinates = [] if wide or melted else _coordinates(usable)
    amounts = [f for f in usable if f.is_value]
    if melted is None and wide is None and amounts:
        plan.value = max(amounts, key=_plainness).name
    labels = [f for f in usable if f.as_mode() == "yes" and not f.is_amount]
    if melted is None and wide is None and plan.value is None and not coordinates:
        plan.value = _told_by_labels(source, usable, labels)
    labels = [f for f in labels if f.name != plan.value]
    if wide is not None:
        labels = _of_rows(usable, labels)
    times = [f for f in usable if f.column.family in DATES]
    clocks = [f for f in usable if f.column.family is Family.CLOCK]
    chosen = times[:1] or clocks[:1]
    if any(f.column.doubt for f in chosen):
        plan.order = "day-first"
    split = len(chosen) == 1 and chosen[0].column.family is Family.MOMENT
    parts = TIME_PARTS if split else DATE_PARTS
    if chosen and chosen[0].column.family in DATES:
        labels = [f for f in labels if not parts.search(f.words)]
    labels = _independent(source, labels)
    room = MOST_MODES - len(chosen) - split - len(coordinates) - (wide is not None)
    best = sorted(labels, key=lambda f: -f.different)[: max(room, 0)]
    for facts in found:
        if facts in chosen:
            plan.modes += _split_time(facts)
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
    return plan


def _told_by_labels(source: Source, usable: Sequence[Facts], labels: Sequence[Facts]) -> str | None:
    """Return the column of numbers of which every combination of the labels has one, as in a table
    that is aggregated already; None if there is none.
    """
    numbers = [f for f in usable if f.column.family in (Family.WHOLE, Family.REAL)]
    times = [f for f in usable if f.column.family in (*DATES, Family.CLOCK)]
    for value in sorted(numbers, key=lambda f: -f.different)[:MOST_COMPARED]:
        others = [f for f in (*times, *labels) if f is not value]
        others = [f for f in others if f.column.family is not Family.REAL][:MOST_COMPARED]
        if CODE.search(value.words) or len(others) < FEW or value.rows > MOST_ROWS_COMPARED:
            continue
        if any(f.different > UNIQUE * f.rows for f in others):
            continue
        listed = ", ".join(f.column.sql for f in others)
        (count,) = one_row(source.sql(f"SELECT count(DISTINCT ({listed})) FROM {SOURCE}"))
        if count >= (1 - MOST_LOST) * value.rows:
            return value.name
    return None


def _of_rows(usable: Sequence[Facts], labels: Sequence[Facts]) -> list[Facts]:
    """Return the labels of the rows of a wide table: one that names each row, or several."""
    kinds = (Family.TEXT, Family.WHOLE)
    unique = [f for f in usable if f.different == f.rows <= MANY and f.column.family in kinds]
    named = [f for f in unique if f.column.family is Family.TEXT] or unique
    return named[:1] or [f for f in labels if f.column.family is not Family.REAL]


def _add_large(plan: Plan, usable: Sequence[Facts]) -> None:
    """Add the most frequent labels of columns that have many."""
    for facts in usable:
        if facts.as_mode().startswith("with --top") and len(plan.modes) < MOST_MODES:
            plan.modes.append(facts.name)
            plan.top[facts.name] = KEPT


def _plainness(facts: Facts) -> tuple[bool, bool, int]:
    """Say how plainly a column is the value: by its name, by its place."""
    return bool(AMOUNT.search(facts.words)), not CODE.search(facts.words), -len(facts.name)


def _split_time(facts: Facts) -> list[str]:
    """Return modes for dates: one that goes on, and the hour of the day."""
    name = facts.name
    if facts.column.family is Family.CLOCK:
        return [f"{name}@1h"]
    first, last = (text and datetime.fromisoformat(text) for text in (facts.low, facts.high))
    spec = next(
        (
            spec
            for spec in ("1d", "1w", "1mo", "1y")
            for period in [Period.parse(spec)]
            if period and first and last
            for bins in [period.bins_between(first, last)]
            if bins <= MOST_USUAL_BINS and (spec == "1y" or bins <= EMPTY * facts.different)
        ),
        "1mo",
    )
    if facts.column.family is Family.MOMENT:
        one_day = first and last and (last - first).days < FEW
        return [f"{name}@{'15min' if one_day else spec}", *([] if one_day else [f"{name}@hour"])]
    return [name] if spec == "1d" or facts.column.step else [f"{name}@{spec}"]


def _coordinates(usable: Sequence[Facts]) -> list[Facts]:
    latitudes = [f for f in usable if f.is_coordinate(LATITUDE, 90)]
    longitudes = [f for f in usable if f.is_coordinate(LONGITUDE, 180)]
    return [latitudes[0], longitudes[0]] if latitudes and longitudes else []


def _independent(source: Source, labels: Sequence[Facts]) -> list[Facts]:
    """Leave out labels that follow from others: codes beside names, regions beside places."""
    found = sorted(labels, key=lambda f: -f.different)[:MOST_COMPARED]
    pairs = [(a, b) for i, a in enumerate(found) for b in found[i + 1 :]]
    if not pairs or found[0].rows > MOST_ROWS_COMPARED:
        return found
    counts = [f"count(DISTINCT ({a.column.sql}, {b.column.sql}))" for a, b in pairs]
    together = one_row(source.sql(f"SELECT {', '.join(counts)} FROM {SOURCE}"))
    out: set[str] = set()
    for (a, b), count in zip(pairs, together, strict=True):
        by_chance = REPEATED * a.different > a.rows
        if by_chance or count > ALIKE * a.different or a.name in out:
            continue
        same = count <= ALIKE * b.different
        named = re.search(r"(?i)\bname\b", b.words) and not re.search(r"(?i)\bname\b", a.words)
        out.add(a.name if same and named else b.name)
    return [facts for facts in found if facts.name not in out]


def _wide(found: Sequence[Facts]) -> tuple[str, str, str] | None:
    """Return columns that look like the labels of a mode, and what the mode could be called."""
    runs: list[list[tuple[Facts, str]]] = [[]]
    for facts in found:
        kind = _kind_of_name(facts.name)
        numeric = facts.column.family in (Family.WHOLE, Family.REAL)
        if not (kind and numeric):
            runs.append([])
        elif runs[-1] and runs[-1][-1][1] != kind:
            runs.append([(facts, kind)])
        else:
            runs[-1].append((facts, kind))
    longest = max(runs, key=len)
    if len(longest) < 4:
        return None
    return longest[0][0].name, longest[-1][0].name, longest[0][1]


def _kind_of_name(name: str) -> str | None:
    """Return what a name is a label of: a month, a year, a date."""
    lowered = name.strip().lower()
    if lowered[:3] in NAMES and re.fullmatch(r"[a-z]{3,9}\.?", lowered):
        return "month"
    if re.fullmatch(r"[xy]?(1[89]|20|21)\d\d", lowered):
        return "year"
    if re.fullmatch(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*", lowered):
        return "weekday"
    return "date" if formats_of(name) else None
