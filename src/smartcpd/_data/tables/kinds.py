"""What columns hold, decided on all of their values: numbers, dates, times, labels.

A sample says what is worth trying, one query over the whole column what is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smartcpd._data.tables.calendars import clock_of, formats_of
from smartcpd._data.tables.columns import Column, Family, Unread
from smartcpd._data.tables.counted_time import counted
from smartcpd._data.tables.dating import Dating
from smartcpd._data.tables.missing import MISSING_VALUES, is_missing
from smartcpd._data.tables.numbering import Numbering, first_of
from smartcpd._data.tables.numerals import (
    BLANKS,
    looks_lettered,
    looks_like_number,
    looks_marked,
)
from smartcpd._data.tables.reading import EPOCHS, EXCEL, ORDERS, Reading
from smartcpd._data.tables.sql import X, listed, literal, one_row
from smartcpd.errors import InvalidDataError

TIME, NUMBER = "time", "number"
"""What a column may be asked to be."""
MOSTLY = 0.9
"""The share of a column's values that must fit for it to be what they say."""
YES = frozenset(
    {"true", "yes", "y", "t", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "sì", "verdadero"}
    | {"sim", "verdadeiro", "vero", "waar", "tak"}
)
NO = frozenset(
    {"false", "no", "n", "f", "nein", "falsch", "non", "faux", "falso", "não", "nao", "nee"}
    | {"onwaar", "nej", "nei", "nie"}
)
"""Words for yes and no in lower case, as people and spreadsheets in several languages have them."""
TIMELY = re.compile(
    r"time|date|stamp|epoch|unix|created|updated|_at$|(^|_)ts$|^when$", re.IGNORECASE
)
"""Names of columns whose large whole numbers count time from 1970."""
DURATION = r"([0-9]+):([0-5][0-9]):([0-5][0-9](?:\.[0-9]+)?)"
"""Hours, minutes and seconds."""
SPECIMENS = 1000


@dataclass(frozen=True)
class Examiner:
    """Decides what the columns of a table hold.

    Parameters
    ----------
    sql : callable
        Runs a query.
    raw : str
        The table as it is stored.
    reading : Reading
        What the user says.
    is_text : bool
        Whether the table has no types, so that text may be numbers as well.
    spread : str
        A condition that chooses rows all over the table, or an empty text.
    decimal_comma : bool
        Whether numbers of the table were seen that have a decimal comma for sure.
    """

    sql: Callable[[str], Any]
    raw: str
    reading: Reading
    is_text: bool
    spread: str = ""
    decimal_comma: bool = False

    def decide(self, column: Column, asked: str | None = None) -> Column:
        """Return the column with what it holds, and how that is read."""
        if self.reading.date_format and column.name in self.reading.date_format:
            asked = TIME
        if column.family is Family.TEXT:
            return self._text(column, asked)
        if column.family in (Family.WHOLE, Family.REAL):
            if self.reading.na:
                column = self._without_words(column)
            return self._counted_if_time(column, asked)
        return column

    def _text(self, column: Column, asked: str | None) -> Column:
        texts = self._sample(column)
        if not texts:
            return column
        if asked == NUMBER:
            found = self._flags(column, texts) or self._durations(column, texts)
            return found or self._numbered(column, asked, texts)
        numeric = _share(texts, looks_like_number)
        said = (self.reading.format_of(column.name) or "").startswith("%") and asked == TIME
        if numeric < MOSTLY or said or self._is_compact(texts):
            dated = self._dated(column, texts, asked)
            if dated is not None:
                return dated
        if asked == TIME and numeric < MOSTLY:
            raise InvalidDataError(
                f"Column {column.name!r} holds no dates in a format that is known, but "
                f"{listed(texts, 3)}; say how they are written, as in "
                f"date_format={{{column.name!r}: '%d/%m/%Y %H:%M'}}."
            )
        if not self.is_text and asked is None:
            return column
        if numeric >= MOSTLY:
            return self._numbered(column, asked, texts)
        if {text.lower() for text in texts} <= {"true", "false"}:
            return self._booleans(column)
        return replace(column, nearly="flags" if _are_flags(texts) else _nearly(texts))

    # Samples.

    def _sample(self, column: Column) -> list[str]:
        """Return different values that are not missing, from all over the table if possible."""
        x = column.stored
        some = f"SELECT {x} AS {X} FROM {self.raw}{self.spread} LIMIT {2 * SPECIMENS}"
        found = self._texts(f"SELECT DISTINCT {X} FROM ({some})")
        if len(found) < 20:
            there = f"NOT {is_missing(X, self.reading.na)}"
            some = f"SELECT {x} AS {X} FROM {self.raw}"
            more = f"SELECT {X} FROM ({some}) WHERE {there} LIMIT {SPECIMENS}"
            found = self._texts(f"SELECT DISTINCT {X} FROM ({more})")
        return found

    def _texts(self, query: str) -> list[str]:
        words = MISSING_VALUES
        if self.reading.na is not None:
            words = frozenset({"", *(word.lower() for word in self.reading.na)})
        texts = (str(x).strip(BLANKS + "\r\n") for (x,) in self.sql(query).fetchall() if x)
        return sorted(text for text in texts if text.lower() not in words)

    def _is_compact(self, texts: Sequence[str]) -> bool:
        """Whether texts are dates without signs between their parts, such as 20140522."""
        return all(len(text) >= 8 and text.isdigit() and formats_of(text) for text in texts)

    # Numbers.

    def _numbered(self, column: Column, asked: str | None, texts: Sequence[str]) -> Column:
        must, has_rows = asked is not None, bool(self.spread)
        found = Numbering(
            self.sql, self.raw, column, self.reading, must, has_rows, self.decimal_comma
        ).of(texts)
        return found if found.family is Family.TEXT else self._counted_if_time(found, asked)

    def _without_words(self, column: Column) -> Column:
        """Leave numbers out that the user says mean missing, such as -999."""
        numbers = [word for word in self.reading.na or () if looks_like_number(word)]
        if not numbers:
            return column
        return replace(column, reads=f"CASE WHEN {X} NOT IN ({', '.join(numbers)}) THEN {X} END")

    # Times.

    def _dated(self, column: Column, texts: Sequence[str], asked: str | None) -> Column | None:
        wanted = self.reading.format_of(column.name)
        given = wanted if wanted and wanted not in (*ORDERS, *EPOCHS, EXCEL) else None
        own = column.name in (self.reading.date_format or {})
        looks = _share(texts, lambda text: bool(formats_of(text)))
        clocks = _share(texts, lambda text: clock_of(text) is not None)
        tried = given is not None or looks >= MOSTLY or clocks >= MOSTLY
        if not tried and not (asked == TIME and looks > 0):
            return None
        order = ORDERS.get(wanted or "")
        rows = bool(self.spread)
        dating = Dating(self.sql, self.raw, column, self.reading.na, order, rows)
        found = dating.of_format(given) if given else dating.of(texts)
        if found is None:
            return None
        others = found.unread.count if found.unread else 0
        if given and not own and asked is None and others > dating.n / 2:
            return None  # the format is for other columns
        if asked is None and not given and others > (1 - MOSTLY) * dating.n:
            return self._not_dates(column, found, dating.n)
        return found

    def _not_dates(self, column: Column, found: Column, n: int) -> Column | None:
        if found.unread is None or found.unread.count > n / 2:
            return None
        note = (
            f"Column {column.name!r} is read as text, since {found.unread.count:,} of {n:,} values "
            f"are not dates, such as {found.unread.example!r}."
        )
        return replace(column, notes=(note,))

    def _counted_if_time(self, column: Column, asked: str | None) -> Column:
        hinted = column.family is Family.WHOLE and TIMELY.search(column.name)
        if asked != TIME and not (asked is None and hinted):
            return column
        value = column.reads or X
        low, high = self._row(column.stored, [f"min({value})", f"max({value})"])
        wanted = self.reading.format_of(column.name)

        def dating(texts: str) -> Dating:
            return Dating(self.sql, self.raw, column, None, None, bool(self.spread), texts)

        return counted(column, (low, high), wanted, asked == TIME, dating)

    # Flags.

    def _flags(self, column: Column, texts: Sequence[str]) -> Column | None:
        """Words for yes and no."""
        if not _are_flags(texts):
            return None
        yes, no = (", ".join(literal(word) for word in sorted(words)) for words in (YES, NO))
        text = f"lower(trim({X}))"
        reads = f"CASE WHEN {text} IN ({yes}) THEN TRUE WHEN {text} IN ({no}) THEN FALSE END"
        return replace(column, type="BOOLEAN", reads=reads, how="yes and no as 1 and 0")

    def _durations(self, column: Column, texts: Sequence[str]) -> Column | None:
        """Times such as 1:02:03 as seconds."""
        if _share(texts, lambda text: re.fullmatch(DURATION, text) is not None) < MOSTLY:
            return None
        hours, minutes, seconds = (
            f"CAST(regexp_extract({X}, {literal(DURATION)}, {i}) AS DOUBLE)" for i in (1, 2, 3)
        )
        known = f"regexp_full_match(trim({X}), {literal(DURATION)})"
        there = f"NOT {is_missing(X, self.reading.na)}"
        (unread,) = self._row(column.stored, [_count(f"{there} AND NOT {known}")])
        reads = f"CASE WHEN {known} THEN 3600 * {hours} + 60 * {minutes} + {seconds} END"
        note = f"Times of {column.name!r} such as {texts[0]!r} are taken in seconds."
        found = replace(column, type="DOUBLE", reads=reads, how="seconds", notes=(note,))
        if not unread:
            return found
        row, text = self._first(column, f"{there} AND NOT {known}")
        return replace(found, unread=Unread(unread, "a time", text, row))

    def _booleans(self, column: Column) -> Column:
        words = f"lower(trim({X})) IN ('true', 'false')"
        there = f"NOT {is_missing(X, self.reading.na)}"
        (others,) = self._row(column.stored, [_count(f"{there} AND NOT {words}")])
        if others:
            return column
        return replace(
            column, type="BOOLEAN", reads=f"CASE WHEN {words} THEN lower(trim({X})) = 'true' END"
        )

    # Queries.

    def _row(self, x: str, wanted: Sequence[str]) -> tuple[Any, ...]:
        """Return aggregates of the column, which the queries call x."""
        return one_row(
            self.sql(f"SELECT {', '.join(wanted)} FROM (SELECT {x} AS {X} FROM {self.raw})")
        )

    def _first(self, column: Column, condition: str) -> tuple[int | None, str]:
        return first_of(self.sql, self.raw, column.stored, condition, bool(self.spread))


def _count(condition: str) -> str:
    return f"count(*) FILTER ({condition})"


def _are_flags(texts: Sequence[str]) -> bool:
    return {text.lower() for text in texts} <= YES | NO


def _nearly(texts: Sequence[str]) -> str:
    """What most texts would be without what stands behind some of them; see `Column`."""
    if _share(texts, looks_marked) >= MOSTLY and not _are_numbered(texts):
        return "marked"
    if _share(texts, looks_like_number) < 0.5:
        return ""
    return "codes" if _share(texts, looks_lettered) >= MOSTLY else "numbers"


def _are_numbered(texts: Sequence[str]) -> bool:
    """Whether texts are labels with a number before them, such as '1. yes' and '2. no': each word
    stands behind one number only, where a unit stands behind many.
    """
    different = {text.strip() for text in texts}
    words = {re.sub(r"^[^A-Za-z]*", "", text) for text in different}
    return len(words) == len(different) > 1 and "" not in words


def _share(texts: Sequence[str], holds: Callable[[str], bool]) -> float:
    return sum(map(holds, texts)) / len(texts)
