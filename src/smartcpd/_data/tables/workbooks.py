"""Tables of spreadsheets and of SQLite, written as text that is read like any other."""

from __future__ import annotations

import csv
import datetime as dt
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from smartcpd._data.tables.sql import identifier, listed
from smartcpd.errors import InvalidDataError, MissingExtraError


def from_workbook(path: str, member: str | None, folder: str) -> tuple[str, list[str]]:
    """Write a sheet of a workbook as CSV; return where it is, and what was decided."""
    try:
        import python_calamine as calamine
    except ImportError:
        raise MissingExtraError("python-calamine", "excel", f"Reading {Path(path).name}") from None
    try:
        book = calamine.CalamineWorkbook.from_path(path)
        rows = {name: _sheet(book, name) for name in book.sheet_names}
    except Exception as error:  # the library has many kinds of errors
        raise InvalidDataError(f"{path!r} cannot be read as a workbook: {error}.") from None
    full = [name for name, lines in rows.items() if len(lines) > 1]
    if member is not None and member not in rows:
        raise InvalidDataError(
            f"There is no sheet {member!r} in {path!r}; it has {listed(list(rows))}."
        )
    if member is None and not full:
        raise InvalidDataError(f"There is no row in {path!r}.")
    chosen = member or full[0]
    notes = []
    if member is None and len(full) > 1:
        notes.append(
            f"Sheet {chosen!r} of {path!r} was read, the first of {listed(full)}; name another as "
            f"'{path}::{full[1]}'."
        )
    return _written(rows[chosen], folder), notes


def _sheet(book: Any, name: str) -> list[list[Any]]:
    return [row for row in book.get_sheet_by_name(name).to_python() if any(c != "" for c in row)]


def from_sqlite(path: str, member: str | None, folder: str) -> str:
    """Write a table of a database of SQLite as CSV; return where it is."""
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    try:
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE "
            "'sqlite_%' ORDER BY name"
        )
        names = [name for (name,) in connection.execute(query)]
        if member is None and len(names) != 1:
            raise InvalidDataError(
                f"{path!r} holds {len(names)} tables; choose one, such as '{path}::{names[0]}', "
                f"of {listed(names)}."
                if names
                else f"{path!r} holds no table."
            )
        chosen = member or names[0]
        if chosen not in names:
            raise InvalidDataError(
                f"There is no table {chosen!r} in {path!r}; it has {listed(names)}."
            )
        rows = connection.execute(f"SELECT * FROM {identifier(chosen)}")
        header = [column[0] for column in rows.description]
        return _written(_with(header, rows), folder)
    except (sqlite3.Error, UnicodeError) as error:  # errors of SQLite may quote what is no text
        raise InvalidDataError(f"{path!r} cannot be read as a SQLite database: {error}.") from None
    finally:
        connection.close()


def _with(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    yield header
    yield from rows


def _written(rows: Iterable[Sequence[Any]], folder: str) -> str:
    target = Path(folder) / "sheet.csv"
    with target.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(map(_texts, rows))
    return str(target)


def _texts(row: Sequence[Any]) -> list[str]:
    """Return cells as text; empty ones at the end are left out, as titles have many."""
    texts = [_text(cell) for cell in row]
    while len(texts) > 1 and not texts[-1]:
        texts.pop()
    return texts


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.datetime):
        is_day = cell.time() == dt.time() and cell.tzinfo is None
        return cell.date().isoformat() if is_day else cell.isoformat(sep=" ")
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return str(cell)
