"""A table: its columns, and which of them could be modes."""

from __future__ import annotations

import shlex
from typing import Any

from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.opening import opened
from smartcpd._data.tables.sources import Source
from smartcpd._data.tables.sql import SOURCE, explained, one_row
from smartcpd._data.tables.wishes import joined
from smartcpd.errors import InvalidDataError

FEW, MANY = 2, 5_000
"""A column with a number of labels between these makes a good mode as it is."""
KEPT = 500
MOST_MODES = 4
TIMES = (Family.DATE, Family.MOMENT, Family.CLOCK)


def check_table(path: str, header: bool | None = None) -> dict[str, Any]:
    """Return figures and advice about a table, in types that JSON knows.

    ``header`` says whether the first line of a text file names its columns, if it is known.
    """
    with opened(path, None, header) as source:
        columns = list(source.columns.values())
        rows, facts = _facts(source, columns)
        guesses = list(source.guesses)
        if source.header_is_a_guess:
            guesses.append(
                "The first line was taken for the names of columns; if it is data, say --no-header."
            )
    if rows == 0:
        raise InvalidDataError(f"There is no row in {path}.")
    described = [
        {
            "name": column.name,
            "type": column.type,
            "holds": str(column.family),
            "different": min(different, rows),
            "missing": missing,
            "advice": _as_mode(column, min(different, rows), rows),
        }
        for column, (different, missing) in zip(columns, facts, strict=True)
    ]
    return {
        "file": path,
        "rows": rows,
        "columns": described,
        "advice": [*_advice(path, described, rows, header), *guesses],
    }


def _facts(source: Source, columns: list[Column]) -> tuple[int, list[tuple[int, int]]]:
    """Return how many rows there are and, for each column, about how many different and missing
    values.
    """
    wanted = ["count(*)"]
    for column in columns:
        wanted += [f"approx_count_distinct({column.sql})", f"count(*) - count({column.sql})"]
    with explained(f"Reading {source.name}"):
        rows, *facts = one_row(source.sql(f"SELECT {', '.join(wanted)} FROM {SOURCE}"))
    return rows, list(zip(facts[::2], facts[1::2], strict=True))


def _as_mode(column: Column, different: int, rows: int) -> str:
    if different < FEW:
        return "tells nothing: one value"
    if column.family in (Family.DATE, Family.MOMENT):
        return "by day; or --bin 1w, 1mo, weekday" + (
            ", hour" if column.family is Family.MOMENT else ""
        )
    if column.family is Family.CLOCK:
        return "by --bin 1h"
    if column.family is Family.REAL:
        return "as --value; or --bin 20q"
    if different > 0.9 * rows and different > KEPT:
        return "looks like an identifier"
    if different > MANY:
        return f"with --top {KEPT}" + ("; or --bin 20q" if column.family is Family.WHOLE else "")
    return "yes"


def _advice(path: str, columns: list[dict[str, Any]], rows: int, header: bool | None) -> list[str]:
    sentences = [
        f"Column {c['name']!r} has no value in {c['missing']:,} of {rows:,} rows; they are left "
        "out where it is a mode."
        for c in columns
        if c["missing"]
    ]
    chosen = [c for c in columns if c["advice"] == "yes" or c["holds"] in {str(f) for f in TIMES}]
    chosen = [c for c in chosen if c["different"] >= FEW][:MOST_MODES]
    if len(chosen) < 2:
        more = [c for c in columns if c["advice"].startswith("with --top")]
        chosen += more[: MOST_MODES - len(chosen)]
    if len(chosen) < 2:
        return [*sentences, "Fewer than two columns could be modes; choose bins for others."]
    words = ["smartcpd", "fit", path, "--modes", joined(c["name"] for c in chosen)]
    large = [c["name"] for c in chosen if c["advice"].startswith("with --top")]
    if large:
        words += ["--top", joined(f"{name}={KEPT}" for name in large)]
    if header is not None:
        words.append("--header" if header else "--no-header")
    return [*sentences, f"To begin with: {shlex.join(words)}"]
