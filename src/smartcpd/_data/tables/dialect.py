"""How a text file is laid out: what parts columns, where the table begins, what names it has."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smartcpd._data.tables.headers import (
    MOST_COMPARED,
    has_header,
    is_second,
    joined_names,
    kind_of,
    names_of,
    recurs,
)
from smartcpd._data.tables.numerals import has_decimal_comma

COMMON, RARE = ",;\t|", "^~\x1f\x01 :"
"""Signs between columns, the likelier ones first."""
WORDY = " :"
MOST_RECORDS = 500
ALIKE = 0.8
"""The share of lines that must have as many columns for a sign to be what parts them."""


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
    found = has_header(first, below) if header is None else header
    named = bool(found) or (found is None and not recurs(first, below))
    width = max(usual, len(first))
    second = tuple(field.strip() for field in below[0]) if named and is_second(below) else ()
    if second:
        first, below = joined_names(first, second), below[1:]
    names = names_of(first, below, width) if named else [f"column{i}" for i in range(width)]
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
    parted = sum(1 for f in fields if others & set(f) and kind_of(f) == "text")
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
    is_header = has_header(records[top].fields, rows)
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
