"""The modes that the user asked for, checked against the columns of the table."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from smartcpd._data.tables.bins import Bin, parse_bin
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.keys import Wish
from smartcpd._data.tables.kinds import NUMBER, TIME
from smartcpd._data.tables.labelling import labels_wish, leading_wish
from smartcpd._data.tables.periods import Cycle, Period, usual_clock, usual_period
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import listed
from smartcpd.errors import InvalidDataError, InvalidParameterError

RESTS = ("gather", "drop")
AT = "@"
"""The sign between a column and its bin, as in 'time@hour'."""


def mode_names(modes: str | Iterable[Any]) -> list[str]:
    """Return one name a mode, from a list or from text with commas."""
    parts: Iterable[Any] = parted(modes) if isinstance(modes, str) else modes
    try:
        names = [str(part).strip() if isinstance(modes, str) else str(part) for part in parts]
    except TypeError:
        raise InvalidParameterError(
            f"modes must be a list of column names; got {type(modes).__name__}."
        ) from None
    if len(names) < 2:
        raise InvalidParameterError(
            f"A tensor has at least two modes; got {len(names)}: {listed(names)}."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidParameterError(
            f"Column {twice[0]!r} is named twice in modes; name it once, or with different bins, "
            f"as in '{twice[0]}{AT}1w' and '{twice[0]}{AT}weekday'."
        )
    return names


def parted(text: str) -> list[str]:
    """Split text at commas; a part that has a comma in it stands in double quotes."""
    (parts,) = csv.reader([text.replace("\n", " ")], skipinitialspace=True) if text else ([""],)
    return [part.strip() for part in parts]


def joined(parts: Iterable[str]) -> str:
    """Join parts to text that `parted` splits again."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(parts)
    return out.getvalue()


def find_column(source: Source, name: str) -> Column:
    """Return the column of exactly this name, or of this number where columns have no names."""
    if name in source.columns:
        return source.columns[name]
    if not source.has_names and f"column{name}" in source.columns:
        return source.columns[f"column{name}"]
    names = list(source.columns)
    lowered = {known.lower(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    hint = f" Did you mean {lowered[close[0]]!r}?" if close else ""
    if len(names) == 1 and source.is_text:
        hint = " Say what parts its columns with delimiter=, if it has several."
    raise InvalidParameterError(
        f"There is no column {name!r} in {source.name}.{hint} Its columns are {listed(names)}."
    )


def column_names(names: Sequence[str], value: str | None) -> list[str]:
    """Return the columns that the table must have, as far as names alone tell."""
    plain = [name.rpartition(AT)[0] or name for name in names]
    return plain if value is None else [*plain, value]


def asked_of(
    source: Source, names: Sequence[str], bins: Mapping[str, Any] | None, value: str | None
) -> dict[str, str | None]:
    """Return the columns that are used, and what their bins want them to be."""
    columns = [_column_and_bin(source, name) for name in names]
    specs = _by_mode("bins", bins, names, columns)
    asked: dict[str, str | None] = {}
    for name, (column, own) in zip(names, columns, strict=True):
        chosen = parse_bin(name, specs[name]) if name in specs else own
        wanted = None if chosen is None else TIME if isinstance(chosen, Period | Cycle) else NUMBER
        asked[column.name] = wanted or asked.get(column.name)
    for place in source.places:
        asked.pop(place.name)
        asked |= {place.north: NUMBER, place.east: NUMBER}
    if value is not None:
        asked[find_column(source, value).name] = NUMBER
    return asked


def wishes(
    source: Source,
    names: Sequence[str],
    bins: Mapping[str, Any] | None,
    top: Mapping[str, int] | None,
    rest: str,
) -> list[Wish]:
    """Return one wish a mode."""
    if rest not in RESTS:
        raise InvalidParameterError(f"rest must be 'gather' or 'drop'; got {rest!r}.")
    columns = [_column_and_bin(source, name) for name in names]
    specs = _by_mode("bins", bins, names, columns)
    counts = _by_mode("top", top, names, columns)
    found = []
    for name, (column, own) in zip(names, columns, strict=True):
        if own is not None and name in specs:
            raise InvalidParameterError(
                f"Mode {name!r} has a bin of its own, and bins= names {specs[name]!r} for it; "
                "keep one of them."
            )
        chosen = parse_bin(name, specs[name]) if name in specs else own
        if any(place.name == name for place in source.places):
            chosen = None  # the cells are labels already
        found.append(_wish(name, column, chosen, counts.get(name), rest == "gather"))
    return found


def _wish(name: str, column: Column, chosen: Bin | None, count: Any, gather: bool) -> Wish:
    family = column.family
    if column.doubt:
        raise InvalidDataError(column.doubt)
    if family is Family.OTHER:
        raise InvalidDataError(
            f"Column {column.name!r} has type {column.type}, which cannot label the rows of a "
            "mode; choose a column of text, numbers or dates."
        )
    if count is not None:
        return _leading(name, column, chosen, count, gather)
    if chosen is not None:
        return chosen.wish(name, column)
    if family is Family.DATE:
        return (Period.parse(column.step or "1d") or Period(1, "d")).wish(name, column)
    if family is Family.MOMENT:
        return usual_period(name, column)
    if family is Family.CLOCK:
        return usual_clock(name, column)
    return labels_wish(name, column)


def _leading(name: str, column: Column, chosen: Bin | None, count: Any, gather: bool) -> Wish:
    if isinstance(count, bool) or not hasattr(count, "__index__") or int(count) < 1:
        raise InvalidParameterError(
            f"top={{{name!r}: {count!r}}} must be a whole number of labels, at least 1."
        )
    if chosen is not None or column.family in (Family.DATE, Family.MOMENT, Family.CLOCK):
        raise InvalidParameterError(
            f"Mode {name!r} is binned, and top= keeps the most frequent of labels without an "
            "order; leave it out of top."
        )
    return leading_wish(name, column, int(count), gather)


def _column_and_bin(source: Source, name: str) -> tuple[Column, Bin | None]:
    column, at, spec = name.rpartition(AT)
    if name in source.columns or not at:
        return find_column(source, name), None
    return find_column(source, column), parse_bin(name, spec)


def _by_mode(
    parameter: str,
    given: Mapping[str, Any] | None,
    names: Sequence[str],
    columns: Sequence[tuple[Column, Bin | None]],
) -> dict[str, Any]:
    """Return the settings by mode, where the user may have written the column."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidParameterError(
            f"{parameter} must be a dict from modes to what to do with them; got "
            f"{type(given).__name__}."
        )
    found = {}
    for key, wanted in given.items():
        of_column = [n for n, (c, own) in zip(names, columns, strict=True) if c.name == key]
        matching = [key] if key in names else of_column
        if len(matching) != 1:
            raise InvalidParameterError(
                f"{parameter} names {key!r}, which is not one of the modes {listed(names)}."
            )
        found[matching[0]] = wanted
    return found
