"""A table: its columns, what they hold, and a command to begin with."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Any

from smartcpd._app.inspection.facts import FEW, MOST_MISSING, ROW_NAMES, Facts
from smartcpd._app.inspection.plan import Plan
from smartcpd._app.inspection.suggestion import planned, suggested
from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.opening import opened
from smartcpd._data.tables.reading import as_reading
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import SOURCE, explained, literal, one_row
from smartcpd._data.tables.unpacking import local
from smartcpd.errors import InvalidDataError

A_DAY = 86_400_000_000
"""In microseconds."""
SMALL = 2_000_000
"""Up to so many rows different values are counted exactly."""
EXAMPLES = 3
GLANCE = 10_000
"""Number of rows that examples come from."""
LONG = 30
"""Number of characters of an example."""
RANGED = (Family.DATE, Family.MOMENT, Family.CLOCK, Family.WHOLE, Family.REAL)


def check_table(
    path: str, reading: Mapping[str, Any] | None = None, words: Sequence[str] = ()
) -> dict[str, Any]:
    """Return figures and advice about a table, in types that JSON knows.

    Parameters
    ----------
    path : str
        Any table that `from_table` reads.
    reading : mapping, optional
        How it is written, as far as the user says, as `from_table` takes it.
    words : sequence of str
        The same as words of the command line, which the command that is suggested has too.
    """
    given = dict(reading or {})
    with tempfile.TemporaryDirectory(prefix="smartcpd-") as folder:
        file = local(path, folder) if path == "-" else path
        with opened(file, reading=as_reading(**given)) as source:
            source.offer()
            source.understand(dict.fromkeys(source.columns))
            found = _facts(source)
            layout, guesses = source.layout, list(source.guesses)
            malformed = source.rejected()
            guesses += filter(None, [source.guess_about_header])
            rows = found[0].rows if found else 0
            if rows == 0:
                raise InvalidDataError(f"There is no row in {path}.")
            with explained(f"Reading {source.name}"):
                plan = planned(source, found)
        command, tried, remarks = suggested(path, file, plan, found, given, words)
    lost = sum(count for _, _, count, *_ in malformed)
    for kind, _, count, message, line in malformed:
        guesses.append(
            f"{count:,} lines do not fit in the table: {kind.lower()} (the first is line {line}: "
            f"{' '.join(str(message).split())})."
        )
    return {
        "file": path,
        "rows": rows + lost,
        **({"layout": layout} if layout else {}),
        "columns": [_described(facts, plan) for facts in found],
        "command": command,
        "tried": tried,
        "advice": list(
            dict.fromkeys(
                [
                    *_about_missing(found),
                    *(f.about_negatives for f in found if plan.where and f.name == plan.value),
                    *_about_lost_values(found, plan),
                    *guesses,
                    *(tried or {}).get("notes", ()),
                    *remarks,
                ]
            )
        ),
    }


def _facts(source: Source) -> list[Facts]:
    """Return what one query tells of every column."""
    columns = list(source.columns.values())
    with explained(f"Reading {source.name}"):
        (rows,) = one_row(source.sql(f"SELECT count(*) FROM {SOURCE}"))
        wanted: list[str] = []
        for column in columns:
            value = _value(column)
            count = "count(DISTINCT {})" if rows <= SMALL else "approx_count_distinct({})"
            wanted += [count.format(value), f"count({value})"]
            wanted += [_shown(column, f"{end}({value})") for end in ("min", "max")]
            if column.family in (Family.WHOLE, Family.REAL):
                wanted += [f"CAST(quantile_cont({value}, {q}) AS DOUBLE)" for q in (0.05, 0.95)]
                wanted.append(f"count(*) FILTER ({value} < 0)")
            else:
                wanted += ["NULL", "NULL", "0"]
            moment = column.family is Family.MOMENT
            wanted.append(f"count(*) FILTER (epoch_us({value}) % {A_DAY} <> 0)" if moment else "0")
        found = iter(
            one_row(source.sql(f"SELECT {', '.join(wanted)} FROM {SOURCE}")) if wanted else ()
        )
        facts = []
        for column in columns:
            different, there, low, high, q05, q95, negative, timed = (next(found) for _ in range(8))
            examples = _examples(source, column)
            facts.append(
                Facts(
                    column,
                    rows,
                    min(different, rows),
                    rows - there,
                    low,
                    high,
                    (q05, q95),
                    examples,
                    negative,
                    timed,
                    column is columns[0] and _is_unnamed(columns),
                )
            )
    return facts


def _is_unnamed(columns: Sequence[Column]) -> bool:
    """Whether the first column has no name, and the others have."""
    first, *others = (column.name for column in columns)
    return bool(ROW_NAMES.fullmatch(first)) and "column1" not in others


def _value(column: Column) -> str:
    """SQL of a value, NULL where it is missing."""
    if column.family is Family.TEXT:
        return column.clean(column.stored if column.reads is None else column.sql)
    if column.family is Family.REAL:
        return column.real()
    return column.sql


def _shown(column: Column, value: str) -> str:
    if column.family not in RANGED:
        return "NULL"
    if column.in_utc:
        return f"CAST(make_timestamp(epoch_us({value})) AS VARCHAR)"
    if column.family in (Family.WHOLE, Family.REAL):
        return f"format({literal('{:.6g}')}, CAST({value} AS DOUBLE))"
    return f"CAST({value} AS VARCHAR)"


def _examples(source: Source, column: Column) -> list[str]:
    """Return some values as they stand in the table."""
    stored = source.stored_columns[column.name].stored
    some = f"SELECT CAST({stored} AS VARCHAR) AS x FROM {source.raw} LIMIT {GLANCE}"
    query = (
        f"SELECT x FROM ({some}) WHERE trim(x) <> '' GROUP BY x ORDER BY count(*) DESC, x "
        f"LIMIT {EXAMPLES}"
    )
    texts = (" ".join(str(x).split()) for (x,) in source.sql(query).fetchall())
    return [text if len(text) <= LONG else text[: LONG - 1] + "…" for text in texts]


def _described(facts: Facts, plan: Plan) -> dict[str, Any]:
    column = facts.column
    is_value = facts.name == plan.value and not facts.as_mode().startswith("as --value")
    return {
        "name": column.name,
        "type": column.type,
        "holds": str(column.family),
        "format": column.how,
        "different": facts.different,
        "exact": facts.rows <= SMALL,
        "missing": facts.missing,
        "unread": 0 if column.unread is None else column.unread.count,
        "lowest": facts.low,
        "highest": facts.high,
        "examples": facts.examples,
        "advice": "as --value" if is_value else facts.as_mode(),
    }


def _about_lost_values(found: Sequence[Facts], plan: Plan) -> list[str]:
    """Say how rows are counted no longer, where a column of measurements misses many."""
    if plan.value or plan.melt:
        return []
    return [
        f"Rows are counted, since {f.name!r} has a number in {f.rows - f.missing:,} of {f.rows:,} "
        f"only; --value {shlex.quote(f.name)} --allow-lost-rows fits these."
        for f in found
        if f.is_amount and MOST_MISSING * f.rows < f.missing < f.rows
    ][:1]


def _about_missing(found: Sequence[Facts]) -> list[str]:
    sentences = []
    merged = _may_be_merged(found)
    for facts in found:
        column = facts.column
        if column.doubt:
            sentences.append(column.doubt)
        if facts.counts_days:
            sentences.append(
                f"Column {column.name!r} holds whole numbers from {facts.low} to {facts.high}; if "
                "they count days as spreadsheets do, say date_format='excel'."
            )
        if column.unread is not None:
            sentences.append(f"Column {column.name!r}: {column.unread}.")
        if column.nearly == "numbers" and not column.notes:
            odd = f", such as {facts.odd_example!r}" if facts.odd_example else ""
            sentences.append(
                f"Column {column.name!r} is read as text, since too many values are not "
                f"numbers{odd}; say na= with the words that mean missing."
            )
        if facts in merged:
            sentences.append(
                f"Column {column.name!r} has a value in {facts.rows - facts.missing:,} of "
                f"{facts.rows:,} rows; where it holds for the empty rows below as well, as merged "
                "cells of a spreadsheet do, fill it down first."
            )
    if any(0 < facts.missing < facts.rows for facts in found):
        sentences.append("Rows without a value are left out where that column is a mode.")
    empty = [facts.column.name for facts in found if facts.missing == facts.rows]
    if empty:
        sentences.append(f"Without any value: {', '.join(map(repr, empty))}.")
    return sentences


def _may_be_merged(found: Sequence[Facts]) -> list[Facts]:
    """The columns whose empty cells may belong to the text above them: those at the left, as
    remarks that most rows do without stand at the right.
    """
    columns = dropwhile(lambda facts: facts.numbers_rows, found)
    sparse = takewhile(lambda f: f.rows / 2 < f.missing <= f.rows - FEW, columns)
    return [facts for facts in sparse if facts.column.family is Family.TEXT]
