"""Numbers in texts: how those of a column are written, decided on all of its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smartcpd._data.tables.columns import Column, Unread
from smartcpd._data.tables.missing import is_missing
from smartcpd._data.tables.numerals import (
    CODED,
    COMMA,
    LETTER,
    MARK,
    PADDED,
    PLAIN,
    POINT,
    SCALES,
    SHORT,
    SHORT_REAL,
    WHOLE,
    WHOLE_REAL,
    NumberFormat,
)
from smartcpd._data.tables.reading import Reading
from smartcpd._data.tables.sql import X, literal, one_row
from smartcpd.errors import InvalidDataError

FEW = 1e-3
"""The share of values that may be no numbers in a column of labels that are numbers."""
CALENDAR = re.compile(
    r"year|month|mois|monat|mes|week|day|tag|jour|dia|hour|hr|stunde|heure|hora|min|sec|yr|mm|dd|hh",
    re.IGNORECASE,
)
"""Names of columns whose digits may begin with a zero and are numbers all the same."""
MOST_MARKS = 100
MARKED_NOTHING = r"[ ]*:[ ]*[a-z]{1,3}[ ]*"
"""A flag where there is no number, as in the tables of Eurostat."""


@dataclass(frozen=True)
class Numbering:
    """Finds out how the numbers of a column are written."""

    sql: Callable[[str], Any]
    raw: str
    column: Column
    reading: Reading
    must: bool
    """Whether it is known that they are numbers, and not labels."""
    has_rows: bool = False
    """Whether rows have numbers, in the order of the file."""
    decimal_comma: bool = False
    """Whether numbers of the table were seen that have a decimal comma for sure."""

    def of(self, texts: Sequence[str]) -> Column:
        """Return the column as numbers, the plainest way first: each pattern costs a look at every
        row.
        """
        column = self.column
        coded = any(t[0] == "0" for t in texts) and all(re.fullmatch(CODED, t) for t in texts)
        if coded and not self.must and not CALENDAR.search(column.name):
            return column
        says = self.reading.decimal, self.reading.thousands
        by_comma = says[0] == "," or says[1] == "." or (says[0] is None and self.decimal_comma)
        for pattern, kind in ((SHORT, "BIGINT"), (WHOLE_REAL, "BIGINT"), (SHORT_REAL, "DOUBLE")):
            usual = self.reading.na is None and not (by_comma and pattern != SHORT)
            if pattern == WHOLE_REAL and self.must:
                continue  # of a value, the decimals tell a measurement from a count
            if usual and all(re.fullmatch(pattern, text) for text in texts):
                plain = _count(f"regexp_full_match({X}, {literal(pattern)})")
                n, found = self._row([f"count({X})", plain])
                if found == n:
                    value = f"TRY_CAST({X} AS DOUBLE)" if pattern == WHOLE_REAL else X
                    return replace(column, type=kind, reads=f"TRY_CAST({value} AS {kind})")
                if pattern != WHOLE_REAL:
                    break
        there = f"CASE WHEN regexp_full_match({X}, {literal(PLAIN)}) THEN TRUE ELSE {{}} END"
        there = there.format(f"NOT {is_missing(X)}")
        if self.reading.na is not None:
            there = f"NOT {is_missing(X, self.reading.na)}"
        patterns = (PLAIN, WHOLE, PADDED)
        counts = [
            _count(there),
            *(_count(f"regexp_full_match({X}, {literal(p)}) AND {there}") for p in patterns),
            _count(f"TRY_CAST({X} AS BIGINT) IS NOT NULL AND {there}"),
            _count(f"contains({X}, '.') AND {there}"),
        ]
        n, plain, whole, padded, fitting, points = self._row(counts)
        if plain == n and not (by_comma and points):
            is_code = padded or (whole == n and fitting < n)
            if is_code and not self.must:
                return column if padded else replace(column, nearly="codes")
            kind = "BIGINT" if whole == n and fitting == n else "DOUBLE"
            return replace(column, type=kind, reads=self._guarded(f"TRY_CAST({X} AS {kind})"))
        return self._formatted(n, there)

    def _formatted(self, n: int, there: str) -> Column:
        """Numbers with signs that are to be found out."""
        column = self.column
        forms = self._candidates()
        counts = [_count(f"{there} AND {form.matches(X)}") for form in forms]
        split = f"{there} AND (contains({X}, ',') OR contains({X}, '.'))"
        *found, example = self._row([*counts, f"min({X}) FILTER ({split})"])
        best = max(found)
        choice = forms[found.index(best)]
        open_to_doubt = len(forms) > 1 and found[0] == found[1] and example is not None
        notes = self._number_notes(choice, example, open_to_doubt)
        if self.must and best < n:
            there = f"{there} AND NOT regexp_full_match({X}, {literal(MARKED_NOTHING)})"
            choice, n, best, marked = self._with_marks(choice, there, best)
            notes = (*notes, *marked)
        unread = n - best
        if unread and (best < n / 2 or (not self.must and unread > FEW * n + 1)):
            return self._not_numbers(
                n, unread, f"{there} AND NOT {choice.matches(X)}", best < n / 2
            )
        value = choice.value(X)
        (fractions,) = self._row([_count(f"{value} <> floor({value})")])
        kind = "DOUBLE" if fractions else "BIGINT"
        reads = self._guarded(value if fractions else f"CAST({value} AS BIGINT)")
        result = replace(column, type=kind, reads=reads, notes=notes, how=_written(choice))
        if unread:
            row, text = self._first(f"{there} AND NOT {choice.matches(X)}")
            result = replace(result, unread=Unread(unread, "a number", text, row))
        return result

    def _not_numbers(self, n: int, unread: int, others: str, mostly: bool) -> Column:
        """The column as text, with a note; an error if it has to hold numbers."""
        column = self.column
        if mostly and not self.must:
            return column
        _, example = self._first(others)
        if self.must:
            raise InvalidDataError(
                f"Column {column.name!r} does not hold numbers: {unread:,} of {n:,} values are "
                f"none, such as {example!r}. Say how they are written with decimal= and "
                "thousands=, which words mean missing with na=, or choose another column."
            )
        note = (
            f"Column {column.name!r} is read as text, since {unread:,} of {n:,} values are not "
            f"numbers, such as {example!r}; if that means missing, say na={example!r}."
        )
        return replace(column, notes=(note,), nearly="numbers")

    def _with_marks(
        self, form: NumberFormat, there: str, read: int
    ) -> tuple[NumberFormat, int, int, tuple[str, ...]]:
        """The form with flags, footnotes or a unit behind numbers, if that is what the other texts
        have; how many texts there are, how many of them it reads, and sentences about it.
        """
        wider = replace(form, marks=f"{MARK}|{LETTER}")
        behind = f"trim(regexp_replace({X}, {literal(form.core)}, ''))"
        found = self.sql(
            f"SELECT {behind} AS mark, count(*) AS n, min({X}) FROM "
            f"(SELECT {self.column.stored} AS {X} FROM {self.raw}) WHERE {there} "
            f"AND NOT {form.matches(X)} AND {wider.matches(X)} "
            f"GROUP BY mark ORDER BY n DESC, mark LIMIT {MOST_MARKS + 1}"
        ).fetchall()
        (n,) = self._row([_count(there)])
        marked = sum(count for _, count, _ in found)
        words = [(mark, text) for mark, _, text in found if mark[:1] not in "[("]
        flags = all(re.search(r"[0-9.,][ ]+[a-z]{1,2}[ ]*$", text) for _, text in words)
        is_unit = len(words) == 1 and read == 0
        multiplies = bool(words) and all(mark.lower() in SCALES for mark, _ in words)
        differ = len(words) > 1 and marked > read
        doubtful = (multiplies or differ) and not flags and not is_unit
        if not marked or doubtful or len(found) > MOST_MARKS:
            return form, n, read, ()
        example = str(found[0][2]).strip()
        what = "the unit" if is_unit else "what stands behind the number"
        some = ", ".join(f"{mark!r} {count:,} times" for mark, count, _ in found[:3])
        note = (
            f"Of values of {self.column.name!r} such as {example!r} {what} is left out: {some}"
            f"{' and others' if len(found) > 3 else ''}."
        )
        return wider, n, read + marked, (note,)

    def _candidates(self) -> list[NumberFormat]:
        decimal, thousands = self.reading.decimal, self.reading.thousands
        if decimal is None and thousands is not None:
            decimal = "," if thousands == "." else "."
        if decimal is not None:
            return [NumberFormat(decimal, thousands)]
        return [COMMA, POINT] if self.decimal_comma else [POINT, COMMA]

    def _number_notes(
        self, form: NumberFormat, example: str | None, open_to_doubt: bool
    ) -> tuple[str, ...]:
        if example is None:
            return ()
        (value,) = self._row([f"min({form.value(X)}) FILTER ({X} = {literal(example)})"])
        if value is None:
            return ()
        other = {".": ",", ",": "."}[form.decimal]
        doubt = (
            f"; if {other!r} is the decimal sign, say decimal={other!r}" if open_to_doubt else ""
        )
        said = f"such as {example.strip()!r} are read as {value:.12g}{doubt}"
        return (f"Numbers of {self.column.name!r} {said}.",)

    def _guarded(self, value: str) -> str:
        """SQL of a value, NULL for words that the user says mean missing."""
        if self.reading.na is None:
            return value
        return f"CASE WHEN NOT {is_missing(X, self.reading.na)} THEN {value} END"

    def _row(self, wanted: Sequence[str]) -> tuple[Any, ...]:
        """Return aggregates of the column, which the queries call x."""
        stored = f"(SELECT {self.column.stored} AS {X} FROM {self.raw})"
        return one_row(self.sql(f"SELECT {', '.join(wanted)} FROM {stored}"))

    def _first(self, condition: str) -> tuple[int | None, str]:
        return first_of(self.sql, self.raw, self.column.stored, condition, self.has_rows)


def first_of(
    sql: Callable[[str], Any], raw: str, stored: str, condition: str, has_rows: bool
) -> tuple[int | None, str]:
    """Return the number of the first row that fulfils a condition on x, if rows have one, and its
    text.
    """
    row = "rowid" if has_rows else "NULL"
    query = f"SELECT min(r), arg_min({X}, r) FROM (SELECT {row} AS r, {stored} AS {X} FROM {raw})"
    if not has_rows:
        query = f"SELECT NULL, min({X}) FROM (SELECT {stored} AS {X} FROM {raw})"
    number, text = one_row(sql(f"{query} WHERE {condition}"))
    return number, "" if text is None else str(text).strip()


def _count(condition: str) -> str:
    return f"count(*) FILTER ({condition})"


def _written(form: NumberFormat) -> str:
    return "numbers with a decimal comma" if form.decimal == "," else "numbers with signs"
