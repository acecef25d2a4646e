"""How a text file is laid out: what parts columns, where the table begins, what names it has."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from smartcpd._data.tables.calendars import clock_of, formats_of
from smartcpd._data.tables.missing import MISSING_LABELS, MISSING_VALUES
from smartcpd._data.tables.numerals import has_decimal_comma, looks_like_number

COMMON, RARE = ",;\t|", "^~\x1f\x01 :"
"""Signs between columns, the likelier ones first."""
WORDY = " :"
MOST_RECORDS = 500
MOST_COMPARED = 60
"""How many rows are compared with the first line, to see whether it names columns."""
ALIKE = 0.8
"""The share of lines that must have as many columns for a sign to be what parts them."""
FEWEST_ROWS = 2
"""The least number of rows that tell a line of units from data."""
SURE = 0.9
"""The share of a column's values that must be numbers or dates for it to hold them."""


@dataclass(frozen=True)
class Record:
    """A line of the table, which may go over several lines of the file."""

    fields: list[str]
    line: int
    """The line of the file on which it begins, counted from 0."""
    index: int
    """How many records are above it, blank lines among them."""


@dataclass(frozen=True)
class Dialect:
    """The layout of a text file.

    Attributes
    ----------
    delimiter, escape : str
    width : int
        Number of columns.
    skip : int
        Number of records above the first row of data, blank lines among them.
    names : tuple of str or None
        The names of columns; None for one behind a delimiter at the end of every line.
    header : bool
        Whether the names stand in the file.
    sure : bool
        Whether it is plain that they do, or that they do not.
    above : int
        Number of lines above the table, which belong to something else.
    multiline : bool
        Whether a value with a line break in it was seen.
    comments : bool
        Whether lines that begin with # are comments.
    decimal_comma : bool
        Whether a number with a decimal comma was seen.
    first : tuple of str
        The fields of the first line of the table.
    second : tuple of str
        The fields of the line below it, if that holds units or further names instead of data.
    """

    delimiter: str
    escape: str
    width: int
    skip: int
    names: tuple[str | None, ...]
    header: bool
    sure: bool
    above: int
    multiline: bool
    comments: bool
    decimal_comma: bool
    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    quoted: bool = True
    quote: str = '"'

    @property
    def layout(self) -> tuple[object, ...]:
        """What files must share to be read together."""
        how = self.delimiter, self.escape, self.quote
        return (*how, self.width, self.skip, self.names, self.comments)


def sniffed(
    text: str,
    delimiter: str | None = None,
    header: bool | None = None,
    wanted: Sequence[str] = (),
) -> Dialect:
    """Find out the layout from the beginning of a file, which ends with a whole line.

    The first line that has all ``wanted`` names is the header, if there is one.
    """
    quote = _quote(text)
    escape = "\\" if re.search(r'[^\\]\\"', text) and '""' not in text else quote
    delimiter = delimiter or _delimiter(text, escape)
    records = _records(text, delimiter, escape)
    usual = _usual_width(records)
    top = _first_with(records, wanted)
    if top is None:
        top = _first_of_table(records, usual)
    table = records[top:]
    first = [field.strip() for field in table[0].fields] if table else []
    below = [record.fields for record in table[1:] if not _is_comment(record)]
    found = _has_header(first, below) if header is None else header
    named = bool(found) or (found is None and not _recurs(first, below))
    width = max(usual, len(first))
    second = tuple(field.strip() for field in below[0]) if named and _is_second(below) else ()
    if second:
        first, below = _joined(first, second), below[1:]
    names = _names(first, below, width) if named else [f"column{i}" for i in range(width)]
    first[:1] = [name.lstrip("# ") for name in first[:1]]
    skip = (table[0].index if table else 0) + named
    if second:
        skip = next(r.index for r in table[1:] if not _is_comment(r)) + 1
    fields = [field for record in records for field in record.fields]
    return Dialect(
        delimiter,
        escape,
        width,
        skip,
        tuple(names),
        named,
        header is not None or found is not None,
        top and table[0].line,
        any("\n" in field or "\r" in field for field in fields),
        any(map(_is_comment, records[:top])),
        delimiter != "," and any(map(has_decimal_comma, fields)),
        tuple(first),
        second,
        quote=quote,
    )


def with_header(dialect: Dialect, text: str, header: bool, wanted: Sequence[str]) -> Dialect:
    """The same layout, read with or without names in the first line."""
    return replace(sniffed(text, dialect.delimiter, header, wanted), quoted=dialect.quoted)


def is_aligned(text: str) -> bool:
    """Whether blanks, one or several, part every line into as many columns."""
    widths = {len(line.split()) for line in text.splitlines() if line.strip()}
    return len(widths) == 1 and widths.pop() > 1 and "  " in text


def _quote(text: str) -> str:
    """Return the sign that stands around values: the single one if every line begins and ends with
    it.
    """
    lines = [line.strip() for line in text.splitlines()[:MOST_COMPARED] if line.strip()]
    single = len(lines) > 1 and all(len(x) > 1 and x[0] == x[-1] == "'" for x in lines)
    return "'" if single else '"'


def _records(text: str, delimiter: str, escape: str) -> list[Record]:
    options: dict[str, object] = {"delimiter": delimiter, "skipinitialspace": delimiter == ","}
    if escape == "\\":
        options |= {"escapechar": "\\", "doublequote": False}
    elif escape == "'":
        options["quotechar"] = escape
    reader = csv.reader(io.StringIO(text, newline=""), **options)  # type: ignore[arg-type]
    found: list[Record] = []
    line = index = 0
    try:
        for fields in reader:
            if any(fields):
                found.append(Record(fields, line, index))
            index += 1
            line = reader.line_num
            if len(found) >= MOST_RECORDS:
                break
    except csv.Error:
        pass
    return found


def _delimiter(text: str, escape: str) -> str:
    """Return the sign that parts most lines into as many columns, and values from each other."""

    def judged(sign: str) -> tuple[bool, float, int, float]:
        records = _records(text, sign, escape)
        width = _usual_width(records)
        if width < 2:
            return False, 0.0, 0, 0.0
        tail = records[len(records) // 5 :]
        share = sum(len(r.fields) == width for r in tail) / len(tail)
        least = _least(width)
        before = next((i for i, r in enumerate(records) if len(r.fields) >= least), 0)
        whole = _wholeness(tail[:MOST_COMPARED], sign)
        if before and sign in WORDY and any(_parts_all(text, s, escape) for s in COMMON):
            whole /= 2  # such signs stand in texts as well, but not in the names above them
        return share >= ALIKE, round(whole * (1 - 1 / width), 1), -before, share

    # Of signs that do equally well the first one is taken.
    best = max(COMMON + RARE, key=judged)
    return best if judged(best)[0] else max(COMMON, key=judged)


def _parts_all(text: str, sign: str, escape: str) -> bool:
    """Whether a sign parts every line, the first one included, into as many columns."""
    widths = {len(record.fields) for record in _records(text, sign, escape)}
    return len(widths) == 1 and widths.pop() > 1


def _wholeness(records: Sequence[Record], sign: str) -> float:
    """Return the share of fields in which no other sign seems to part anything."""
    others = set(COMMON + RARE) - {sign, " ", ":"}
    fields = [field for record in records for field in record.fields if field.strip()]
    parted = sum(1 for f in fields if others & set(f) and _kind(f) == "text")
    return 1 - parted / max(len(fields), 1)


def _usual_width(records: Sequence[Record]) -> int:
    tail = records[len(records) // 5 :] if len(records) > 5 else records
    widths = Counter(len(record.fields) for record in tail)
    # Of widths that are equally frequent the largest one, as short lines are filled up.
    return max(widths, key=lambda width: (widths[width], width)) if widths else 1


def _first_of_table(records: Sequence[Record], usual: int) -> int:
    """Return the record where the table begins, its header or its first row."""
    least = _least(usual)
    wide = [i for i, r in enumerate(records) if len(r.fields) >= least and not _is_aside(r, usual)]
    if not wide:
        return 0
    top = wide[0]
    rows = [record.fields for record in records[top + 1 :]]
    is_header = _has_header(records[top].fields, rows)
    above = records[top - 1] if top else records[top]
    if top and _is_comment(above) and len(above.fields) == usual and is_header is not True:
        # A header may begin with the sign of a comment.
        return top - 1
    # Row names of R have no header of their own.
    of_r = 0 < top <= 2 and len(above.fields) == usual - 1 > 1 and is_header is not True
    return top - 1 if of_r else top


def _first_with(records: Sequence[Record], wanted: Sequence[str]) -> int | None:
    """Return the record that has all of the names."""
    names = [{" ".join(field.strip(" #").split()) for field in r.fields} for r in records]
    found = (i for i, there in enumerate(names) if set(wanted) <= there)
    return next(found, None) if wanted else None


def _least(width: int) -> int:
    """Return how many fields a line of the table has at least, so that it is no title."""
    return width if width < 4 else width - 1


def _is_aside(record: Record, usual: int) -> bool:
    """Whether a line is a comment, or a title in a line of empty fields."""
    return _is_comment(record) or (usual > 2 and sum(map(bool, record.fields)) < 2)


def _is_comment(record: Record) -> bool:
    return record.fields[0].lstrip().startswith("#")


def _kind(field: str) -> str:
    text = field.strip()
    if text.lower() in MISSING_VALUES:
        return ""
    if looks_like_number(text):
        return "number"
    return "date" if formats_of(text) or clock_of(text) else "text"


def _has_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first line names columns; None if every column holds text."""
    if not below:
        return True
    below = below[:MOST_COMPARED]
    different, alike = 0, []
    for j, name in enumerate(first):
        kinds = Counter(_kind(row[j]) for row in below if j < len(row))
        kinds.pop("", None)
        usual, count = kinds.most_common(1)[0] if kinds else ("text", 0)
        if usual == "text" or count < SURE * kinds.total():
            continue
        if _kind(name) == usual:
            alike.append(name)
        elif name.strip():
            different += 1
    if _is_sequence([name for name in first if re.fullmatch(r"\s*(19|20)\d\d\s*", name)]):
        return True
    if not different and not alike:
        return None
    return different >= max(len(alike), 1) or _is_sequence(alike)


def _is_second(below: Sequence[Sequence[str]]) -> bool:
    """Whether the line below the names holds units or further names: words, or nothing, wherever
    the lines that follow hold numbers or dates.
    """
    line, rows = below[0] if below else [], below[1:MOST_COMPARED]
    if len(rows) < FEWEST_ROWS:
        return False
    words = 0
    for j, field in enumerate(line):
        kinds = Counter(_kind(row[j]) for row in rows if j < len(row))
        kinds.pop("", None)
        usual, count = kinds.most_common(1)[0] if kinds else ("text", 0)
        if usual == "text" or count < SURE * kinds.total():
            if field.strip() and field.strip() in {row[j].strip() for row in rows if j < len(row)}:
                return False
            continue
        # In a row of data such words would stand for values that are missing.
        if _kind(field) not in ("", "text") or field.strip() in MISSING_LABELS - {""}:
            return False
        words += bool(field.strip(" -"))
    return words > 0


def _joined(first: Sequence[str], second: Sequence[str]) -> list[str]:
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


def _recurs(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the fields of the first line are found again further down, as data are."""
    again = [
        name in {row[j].strip() for row in below if j < len(row)} for j, name in enumerate(first)
    ]
    return any(a for a, name in zip(again, first, strict=True) if name)


def _names(first: Sequence[str], below: Sequence[Sequence[str]], width: int) -> list[str | None]:
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
