"""Texts of a column as dates: formats tried on all of its values, the order of day and month."""

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
FIRST = -30_610_224_000
"""The beginning of the year 1000, in seconds since 1970; earlier dates are misread."""
TIGHTER = 4
"""How many times shorter the span of dates must be for a year to stand first in two digits."""


@dataclass(frozen=True)
class Fit:
    """What formats make of the texts of a column."""

    count: int
    low: Any
    high: Any
    """The first and the last moment, in seconds since 1970."""
    late: int
    """How many of them are not at midnight."""


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
    odd: bool = False
    """Whether formats make of some texts dates in years that people do not write."""

    @property
    def stored(self) -> str:
        value = self.texts.replace(X, self.column.stored)
        row = ", rowid AS r" if self.has_rows else ""
        return f"(SELECT {value} AS {X}{row} FROM {self.raw})"

    def of(self, specimens: Sequence[str]) -> Column | None:
        """Return the column as dates, as times of day, or None if it holds neither."""
        found: list[str] = list(specimens)
        fits: dict[str, Fit] = {}
        for _ in range(ROUNDS):
            if not self._learn(found, rare=bool(fits)):
                break
            fits = self._counted()
            best = max(fits, key=lambda order: fits[order].count)
            if fits[best].count == self.n:
                break
            found = self._unmatched(best)
        if not any(fit.count for fit in fits.values()):
            return None
        chosen, doubt = self._settled(fits)
        return self._finished(chosen, fits[chosen], doubt)

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
        return self._finished("", self._counted()[""], "")

    def _learn(self, texts: Sequence[str], rare: bool) -> bool:
        """Add the formats that texts may be in, the day before the month after a year only if it is
        to be tried; return whether there are new ones.
        """
        before = dict(self.formats)
        for text in texts:
            clock = clock_of(text)
            for form in formats_of(text) or ([clock] if clock else []):
                if self.order and form.order and form.order != self.order:
                    continue
                if form.order == "ydm" and not rare:
                    continue
                known = self.formats.get(form.text, form)
                repairs = tuple(dict.fromkeys((*known.repairs, *form.repairs)))
                self.formats[form.text] = replace(form, repairs=repairs)
        if any(form.has_date for form in self.formats.values()):
            self.formats = {t: form for t, form in self.formats.items() if form.has_date}
        return self.formats != before

    def _family(self, order: str) -> list[DateFormat]:
        """Return the formats that take day and month in an order, and those without a choice."""
        return [form for form in self.formats.values() if form.order in ("", order)]

    def _counted(self) -> dict[str, Fit]:
        """Return for each order what the dates are that it makes of the texts."""
        orders = sorted({form.order for form in self.formats.values()} - {""}) or [""]
        read = [f"{parsed(X, self._family(o))} AS m{i}" for i, o in enumerate(orders)]
        wanted = [f"count({X})"]
        for i, order in enumerate(orders):
            family = self._family(order)
            sure = any(f.is_zoned for f in family) or not any(f.has_time for f in family)
            late = "1" if sure else f"count(*) FILTER (m{i} <> date_trunc('day', m{i}))"
            wanted += [f"count(m{i})", f"epoch(min(m{i}))", f"epoch(max(m{i}))", late]
        query = f"SELECT {X}, {', '.join(read)} FROM {self._there()}"
        self.n, *found = one_row(self.sql(f"SELECT {', '.join(wanted)} FROM ({query})"))
        fits = {order: Fit(*found[4 * i : 4 * i + 4]) for i, order in enumerate(orders)}
        best = max(fits, key=lambda order: fits[order].count)
        if fits[best].count < self.n and self.na is None:
            # Words for missing values are looked for where nothing else was found.
            words = f"{self._is_unread(best)} AND {is_missing(X)}"
            (missing,) = one_row(self.sql(f"SELECT count(*) FROM {self.stored} WHERE {words}"))
            self.n -= missing
        self.odd = any(f.low is not None and f.low < FIRST for f in fits.values())
        if self.odd:
            return {o: replace(f, count=f.count - self._misread(o)) for o, f in fits.items()}
        return fits

    def _there(self) -> str:
        """The texts, without words that the user says mean missing."""
        if self.na is None:
            return self.stored
        row = ", r" if self.has_rows else ""
        return f"(SELECT {X}{row} FROM {self.stored} WHERE NOT {is_missing(X, self.na)})"

    def _is_unread(self, order: str) -> str:
        """SQL that says whether there is a text, and no date in it."""
        return f"{X} IS NOT NULL AND ({self._moment(order)}) IS NULL"

    def _misread(self, order: str) -> int:
        """Count the dates of years that people do not write, such as 14."""
        moment = parsed(X, self._family(order))
        query = f"SELECT count(*) FROM {self._there()} WHERE epoch({moment}) < {FIRST}"
        return int(one_row(self.sql(query))[0])

    def _moment(self, order: str) -> str:
        moment = parsed(X, self._family(order))
        return f"CASE WHEN epoch({moment}) >= {FIRST} THEN {moment} END" if self.odd else moment

    def _unmatched(self, order: str) -> list[str]:
        condition = f"{self._is_unread(order)} AND NOT {is_missing(X, self.na)}"
        query = f"SELECT DISTINCT {X} FROM {self.stored} WHERE {condition} LIMIT {SPECIMENS}"
        return [str(x).strip() for (x,) in self.sql(query).fetchall()]

    def _settled(self, fits: dict[str, Fit]) -> tuple[str, str]:
        """Return the order that fits, and a sentence where another one fits as well."""
        most = max(fit.count for fit in fits.values())
        fitting = [order for order, fit in fits.items() if fit.count == most]
        if "ymd" in fitting:
            spans = {o: fits[o].high - fits[o].low for o in fitting}
            others = [spans[o] for o in fitting if o in ("dmy", "mdy")]
            if not others or TIGHTER * spans["ymd"] < min(others):
                return "ymd", ""
            fitting.remove("ymd")
        if {"dmy", "mdy"} <= set(fitting):
            a, b = (parsed(X, self._family(order)) for order in ("dmy", "mdy"))
            query = f"SELECT min({X}) FILTER ({a} <> {b}) FROM {self._there()}"
            (example,) = one_row(self.sql(query))
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

    def _finished(self, order: str, fit: Fit, doubt: str) -> Column:
        family = self._family(order)
        dates = any(form.has_date for form in family)
        value = self._moment(order)
        if self.na is not None:
            value = f"CASE WHEN NOT {is_missing(X, self.na)} THEN {value} END"
        kind = "TIME" if not dates else "TIMESTAMP" if fit.late else "DATE"
        if kind == "TIMESTAMP" and not any(form.has_time for form in family):
            kind = "DATE"
        if kind == "TIMESTAMP" and any(form.is_zoned or form.in_utc for form in family):
            kind = "TIMESTAMP WITH TIME ZONE"
            explicit = any(form.is_zoned for form in family)
            value = value if explicit else f"({value}) AT TIME ZONE 'UTC'"
        else:
            value = f"CAST({value} AS {kind})"
        step = self._step(family)
        how = " or ".join(dict.fromkeys(form.text for form in family))
        if step == "3mo":
            how = "quarters of a year"
        iso = all(f.text.startswith(("%Y-%m-%d", "%H:%M")) and not f.repairs for f in family)
        notes = () if iso else (f"Dates of {self.column.name!r} are read as {how}.",)
        unread = None
        if fit.count < self.n:
            unread = self._unread(order, self.n - fit.count)
        return replace(
            self.column,
            type=kind,
            reads=value.replace(X, f"({self.texts})"),
            how=how,
            notes=(*self.column.notes, *notes),
            step=step,
            unread=unread,
            doubt=doubt,
            order=next((word for word, known in ORDERS.items() if known == order), ""),
        )

    def _unread(self, order: str, count: int) -> Unread:
        condition = f"{self._is_unread(order)} AND NOT {is_missing(X, self.na)}"
        wanted = f"min(r), arg_min({X}, r)" if self.has_rows else f"NULL, min({X})"
        row, text = one_row(self.sql(f"SELECT {wanted} FROM {self.stored} WHERE {condition}"))
        dated = any(form.has_date for form in self._family(order))
        what = "a date" if dated else "a time"
        return Unread(count, what, "" if text is None else str(text).strip(), row)

    def _step(self, family: list[DateFormat]) -> str | None:
        """Return the length of what the dates name, if they do not name days."""
        if any(form.has_day and "%V" not in form.text for form in family):
            return None
        if all("%V" in form.text for form in family):
            return "1w"
        return "3mo" if all("quarter" in form.repairs for form in family) else "1mo"
