"""The names of columns in a text file: whether a line holds them, and what is made of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from smartcpd._data.tables.calendars import clock_of, formats_of
from smartcpd._data.tables.missing import MISSING_VALUES
from smartcpd._data.tables.numerals import looks_like_number

MOST_COMPARED = 60
"""How many rows are compared with the first line, to see whether it names columns."""
FEWEST_ROWS = 2
"""The least number of rows that tell a line of units from data."""
SURE = 0.9
"""The share of a column's values that must be numbers or dates for it to hold them."""


def kind_of(field: str) -> str:
    text = field.strip()
    if text.lower() in MISSING_VALUES:
        return ""
    if looks_like_number(text):
        return "number"
    return "date" if formats_of(text) or clock_of(text) else "text"


def has_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first line names columns; None if every column holds text."""
    if not below:
        return True
    below = below[:MOST_COMPARED]
    different, alike = 0, []
    for j, name in enumerate(first):
        kinds = Counter(kind_of(row[j]) for row in below if j < len(row))
        kinds.pop("", None)
        usual, count = kinds.most_common(1)[0] if kinds else ("text", 0)
        if usual == "text" or count < SURE * kinds.total():
            continue
        if kind_of(name) == usual:
            alike.append(name)
        elif name.strip():
            different += 1
    if _is_sequence([name for name in first if re.fullmatch(r"\s*(19|20)\d\d\s*", name)]):
        return True
    if not different and not alike:
        return None
    return different >= max(len(alike), 1) or _is_sequence(alike)


def is_second(below: Sequence[Sequence[str]]) -> bool:
    """Whether the line below the names holds units or further names: words, or nothing, wherever
    the lines that follow hold numbers or dates.
    """
    line, rows = below[0] if below else [], below[1:MOST_COMPARED]
    if len(rows) < FEWEST_ROWS:
        return False
    words, labelled = 0, False
    for j, field in enumerate(line):
        kinds = Counter(kind_of(row[j]) for row in rows if j < len(row))
        kinds.pop("", None)
        usual, count = kinds.most_common(1)[0] if kinds else ("text", 0)
        said = bool(field.strip(" -"))
        if usual == "text" or count < SURE * kinds.total():
            if said and field.strip() in {row[j].strip() for row in rows if j < len(row)}:
                return False
            labelled |= said
            continue
        # A number, a date or a word for a missing value belongs to a row of data.
        if said and kind_of(field) != "text":
            return False
        words += said
    # One word beside a label may be a value that nobody can read.
    return words > labelled


def joined_names(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return the names of columns whose names recur, with what stands below them."""
    often = Counter(name for name in first if name)
    pairs = zip(first, [*second, *[""] * len(first)], strict=False)
    return [f"{a} {b}".strip() if often[a] > 1 else a for a, b in pairs]


def _is_sequence(names: Sequence[str]) -> bool:
    """Whether names are numbers that follow each other, such as years."""
    if len(names) < 3 or not all(re.fullmatch(r"\s*\d{1,4}\s*", name) for name in names):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(names)}
    return len(steps) == 1 and steps != {0}


def recurs(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the fields of the first line are found again further down, as data are."""
    again = [
        name in {row[j].strip() for row in below if j < len(row)} for j, name in enumerate(first)
    ]
    return any(a for a, name in zip(again, first, strict=True) if name)


def names_of(first: Sequence[str], below: Sequence[Sequence[str]], width: int) -> list[str | None]:
    """Return a name for every column, no two of them alike but for upper and lower case."""
    empty_end = all(len(row) < width or not row[width - 1].strip() for row in below)
    wanted: list[str] = list(first)
    if len(wanted) == width - 1 and not empty_end:
        wanted = ["", *wanted]  # row names of R
    wanted += [""] * (width - len(wanted))
    wanted[0] = wanted[0].lstrip("# ") if wanted[0].startswith("#") else wanted[0]
    ignored = width > 1 and not wanted[-1] and empty_end and bool(below)
    found = told_apart(wanted)
    return [*found[:-1], None] if ignored else list(found)


def told_apart(wanted: Iterable[str]) -> list[str]:
    """Return names that are not empty and not alike: a number is put behind those that recur."""
    given = [" ".join(name.split()) for name in wanted]
    taken: set[str] = {name.lower() for name in given if name}
    seen: set[str] = set()
    found = []
    for i, name in enumerate(given):
        chosen = name or f"column{i}"
        if chosen.lower() in (seen if name else taken | seen):
            chosen = _free(chosen, lambda new: new.lower() in taken | seen)
        seen.add(chosen.lower())
        found.append(chosen)
    return found


def _free(name: str, is_taken: Callable[[str], bool]) -> str:
    number = 1
    while is_taken(f"{name}_{number}"):
        number += 1
    return f"{name}_{number}"
