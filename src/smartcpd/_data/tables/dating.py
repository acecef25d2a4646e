"""Texts of a column as dates: formats tried on all of its values, and the order of day and month."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smartcpd._data.tables.calendars import DateFormat, clock_of, formats_of, parsed
from smartcpd._data.tables.columns import Column, Unread
from smartcpd._data.tables.missing import is_missing
from smartcpd._data.tables.reading import ORDERS
from smartcpd._data.tables.sql import X, literal, one_row
from smartcpd.errors import InvalidParameterError

ROUNDS = 5
"""How often formats are added for values that fit none of those found so far."""
SPECIMENS = 200
ODD_YEAR = 1000
"""Years before this one are misread."""
TIGHTER = 4
"""How many times shorter the span of dates must be for a year to stand first in two digits."""


@dataclass
class Dating:
    """Finds the formats that fit the texts of a column."""

    sql: Callable[[str], Any]
    raw: str
    column: Column
    na: tuple[str, ...] | None = None
    order: str | None = None
    """The order of day, month and year, if the user says it."""
    has_rows: bool = False
    """Whether rows have numbers, in the order of the file."""
    texts: str = X
    """SQL of the text, where the column itself is none."""
    n: int = 0
    """How many values are not missing."""
    formats: dict[str, DateFormat] = field(default_factory=dict)

    @property
    def there(self) -> str:
        return f"NOT {is_missing(X, self.na)}"

    @property
    def stored(self) -> str:
        value = self.texts.replace(X, self.column.stored)
        row = ", rowid AS r" if self.has_rows else ""
        return f"(SELECT {value} AS {X}{row} FROM {self.raw})"

    def of(self, specimens: Sequence[str]) -> Column | None:
        """Return the column as dates, as times of day, or None if it holds neither."""
        found: list[str] = list(specimens)
        best, counts = "", {}
        for _ in range(ROUNDS):
            if not self._learn(found):
                break
            counts = self._counted()
            best = max(counts, key=lambda order: counts[order][0])
            if counts[best][0] == self.n:
                break
            found = self._unmatched(best)
        if not counts or not counts[best][0]:
            return None
        chosen, doubt = self._settled(counts)
        return self._finished(self._family(chosen), doubt)

    def of_format(self, text: str) -> Column:
        """Return the column as dates of the format that the user says."""
        import duckdb

        form = DateFormat(text)
        try:
            self.sql(f"SELECT strptime('', {literal(text)}) WHERE false").fetchall()
            self.sql(f"SELECT try_strptime('x', {literal(text)}) IS NULL").fetchall()
        except duckdb.Error as error:
            raise InvalidParameterError(
                f"date_format={text!r} is not a format of dates: {str(error).splitlines()[0]}."
            ) from None
        self.formats = {text: form}
        self._counted()
        return self._finished([form], "")

    def _learn(self, texts: Sequence[str]) -> bool:
        """Add the formats that texts may be in; return whether there are new ones."""
        before = len(self.formats)
        for text in texts:
            clock = clock_of(text)
            for form in formats_of(text) or ([clock] if clock else []):
                if self.order and form.order and form.order != self.order:
                    continue
                known = self.formats.get(form.text, form)
                repairs = tuple(dict.fromkeys((*known.repairs, *form.repairs)))
                self.formats[form.text] = replace(form, repairs=repairs)
        if any(form.has_date for form in self.formats.values()):
            self.formats = {t: form for t, form in self.formats.items() if form.has_date}
        return len(self.formats) > before

    def _family(self, order: str) -> list[DateFormat]:
        """Return the formats that take day and month in an order, and those without a choice."""
        return [form for form in self.formats.values() if form.order in ("", order)]

    def _counted(self) -> dict[str, tuple[int, Any, Any]]:
        """Return for each order how many values it fits, and the first and the last date."""
        orders = sorted({form.order for form in self.formats.values()} - {""}) or [""]
        wanted = [f"count(*) FILTER ({self.there})"]
        for order in orders:
            moment = f"CASE WHEN {self.there} THEN {self._sane(order)} END"
            wanted += [f"count({moment})", f"epoch(min({moment}))", f"epoch(max({moment}))"]
        self.n, *found = one_row(self.sql(f"SELECT {', '.join(wanted)} FROM {self.stored}"))
        return {o: tuple(found[3 * i : 3 * i + 3]) for i, o in enumerate(orders)}  # type: ignore[misc]

    def _sane(self, order: str) -> str:
        moment = parsed(X, self._family(order))
        if all(not form.has_date or "%Y" not in form.text for form in self._family(order)):
            return moment
        return f"CASE WHEN year({moment}) >= {ODD_YEAR} THEN {moment} END"

    def _unmatched(self, order: str) -> list[str]:
        condition = f"{self.there} AND ({self._sane(order)}) IS NULL"
        query = f"SELECT DISTINCT {X} FROM {self.stored} WHERE {condition} LIMIT {SPECIMENS}"
        return [str(x).strip() for (x,) in self.sql(query).fetchall()]

    def _settled(self, counts: dict[str, tuple[int, Any, Any]]) -> tuple[str, str]:
        """Return the order that fits, and a sentence where another one fits as well."""
        most = max(count for count, *_ in counts.values())
        fitting = [order for order, (count, *_) in counts.items() if count == most]
        if "ymd" in fitting:
            spans = {o: counts[o][2] - counts[o][1] for o in fitting}
            others = [spans[o] for o in fitting if o in ("dmy", "mdy")]
            if not others or TIGHTER * spans["ymd"] < min(others):
                return "ymd", ""
            fitting.remove("ymd")
        if {"dmy", "mdy"} <= set(fitting):
            a, b = (parsed(X, self._family(order)) for order in ("dmy", "mdy"))
            differ = f"{self.there} AND {a} <> {b}"
            (example,) = one_row(self.sql(f"SELECT min({X}) FILTER ({differ}) FROM {self.stored}"))
            if example is not None:
                return "dmy", self._doubt(str(example).strip())
        return fitting[0], ""

    def _doubt(self, example: str) -> str:
        name = self.column.name
        first, second = (word for word, order in ORDERS.items() if order in ("dmy", "mdy"))
        return (
            f"Day and month of {name!r} cannot be told apart, as in {example!r}: say "
            f"date_format={first!r} or date_format={second!r}."
        )

    def _finished(self, family: list[DateFormat], doubt: str) -> Column:
        dates = any(form.has_date for form in family)
        times = any(form.has_time for form in family)
        zoned = any(f.in_utc or "%z" in f.text or "%Z" in f.text for f in family)
        inner = parsed(X, family)
        order = next((form.order for form in family if form.order), "")
        value = f"CASE WHEN {self.there} THEN {self._sane(order) if dates else inner} END"
        explicit = any("%z" in f.text or "%Z" in f.text for f in family)
        at_night = f"count(*) FILTER (CAST({value} AS TIME) <> TIME '00:00:00')"
        found, clocks = one_row(
            self.sql(f"SELECT count({value}), {at_night if times and dates and not explicit else '1'} FROM {self.stored}")
        )
        kind = "TIME" if not dates else "TIMESTAMP" if times and clocks else "DATE"
        if kind == "TIMESTAMP" and zoned:
            kind = "TIMESTAMP WITH TIME ZONE"
            value = value if explicit else f"({value}) AT TIME ZONE 'UTC'"
        else:
            value = f"CAST({value} AS {kind})"
        how = " or ".join(dict.fromkeys(form.text for form in family))
        iso = all(f.text.startswith(("%Y-%m-%d", "%H:%M")) and not f.repairs for f in family)
        notes = () if iso else (f"Dates of {self.column.name!r} are read as {how}.",)
        unread = None
        if found < self.n:
            unread = self._unread(family, self.n - found)
        return replace(
            self.column,
            type=kind,
            reads=value.replace(X, f"({self.texts})"),
            how=how,
            notes=(*self.column.notes, *notes),
            step=self._step(family),
            unread=unread,
            doubt=doubt,
        )

    def _unread(self, family: list[DateFormat], count: int) -> Unread:
        condition = f"{self.there} AND ({parsed(X, family)}) IS NULL"
        wanted = f"min(r), arg_min({X}, r)" if self.has_rows else f"NULL, min({X})"
        row, text = one_row(self.sql(f"SELECT {wanted} FROM {self.stored} WHERE {condition}"))
        what = "a date" if any(form.has_date for form in family) else "a time"
        return Unread(count, what, "" if text is None else str(text).strip(), row)

    def _step(self, family: list[DateFormat]) -> str | None:
        """Return the length of what the dates name, if they do not name days."""
        if any(form.has_day and "%V" not in form.text for form in family):
            return None
        if all("%V" in form.text for form in family):
            return "1w"
        return "3mo" if all("quarter" in form.repairs for form in family) else "1mo"

