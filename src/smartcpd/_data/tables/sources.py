"""Tables behind one interface: files, data frames, Arrow tables and relations."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.paths import LATIN, Files, find_files
from smartcpd._data.tables.sql import (
    OURS,
    SOURCE,
    explained,
    identifier,
    literal,
    memory_limit,
    one_row,
    reason,
)
from smartcpd.errors import InvalidDataError, InvalidParameterError, MissingExtraError

SHARE_OF_LIMIT = 5 / 8
"""The share of the limit that DuckDB sets itself (four fifths of the memory) that it may use."""
FEW = 1e-3
"""The share of a column's values in a text file that may contradict the type its beginning
promised.
"""


@dataclass(frozen=True)
class TableRows:
    """The rows of a table that are used."""

    name: str
    table: str
    """The SQL that stands after FROM."""
    sql: Callable[[str], Any]

    def answers(self, questions: Sequence[Sequence[str]]) -> list[tuple[Any, ...]]:
        """Answer groups of questions, each the SQL of an aggregate, in one query."""
        asked = list(chain.from_iterable(questions))
        query = f"SELECT {', '.join(asked)} FROM {self.table}"
        found = iter(one_row(self.sql(query)) if asked else ())
        return [tuple(islice(found, len(group))) for group in questions]


class Source:
    """A table that can be queried as often as needed, under the name `SOURCE`."""

    def __init__(self, name: str, connection: Any) -> None:
        self.name = name
        self.connection = connection
        self.columns: dict[str, Column] = {}

    def sql(self, query: str) -> Any:
        """Return a relation, which is not computed yet, or run a statement."""
        return self.connection.sql(query)

    def describe(self) -> None:
        """Find out the columns."""
        with explained(f"Reading {self.name}"):
            relation = self.sql(f"SELECT * FROM {SOURCE}")
            pairs = zip(relation.columns, relation.types, strict=True)
            self.columns = {name: Column(name, str(kind)) for name, kind in pairs}

    def rows(self, columns: list[Column], condition: str) -> TableRows:
        """Those that fulfil the condition; data in columns is quick to read several times."""
        return TableRows(self.name, SOURCE + condition, self.sql)

    def kept_rows(self, columns: list[Column], condition: str) -> TableRows:
        """The same, copied to where DuckDB can read them several times."""
        table = f"{OURS}_rows"
        needed = ", ".join(dict.fromkeys(column.sql for column in columns))
        self.sql(f"DROP TABLE IF EXISTS {table}")
        self.sql(f"CREATE TEMP TABLE {table} AS SELECT {needed} FROM {SOURCE}{condition}")
        return TableRows(self.name, table, self.sql)

    def look_for(self, wanted: list[str]) -> None:
        """Look once more for columns that were not found; only text files have another reading."""

    def examine(self, wanted: list[str]) -> None:
        """Learn more about columns where that costs next to nothing: Parquet has statistics."""

    def rejected(self) -> list[tuple[Any, ...]]:
        """Return rows that could not be read: kind, column, count, message and line of the
        first.
        """
        return []

    @property
    def guesses(self) -> list[str]:
        """Return what was assumed about the files, in sentences."""
        return []

    @property
    def header_is_a_guess(self) -> bool:
        """Whether names of columns might be a row of data."""
        return False

    def wrongly_decoded(self, faults: list[tuple[Any, ...]]) -> bool:
        """Whether the text has another encoding; it is read anew if so."""
        return False

    def misjudged(self, faults: list[tuple[Any, ...]], rows: int) -> tuple[str, ...]:
        """Return columns that hold something else than their type says."""
        return ()

    def as_text(self, columns: tuple[str, ...]) -> None:
        """Read these columns without guessing what they hold."""


class FileSource(Source):
    """A table in files that DuckDB reads; rows of text files that do not fit are set aside."""

    def __init__(self, files: Files, connection: Any, header: bool | None = None) -> None:
        super().__init__(repr(files.name), connection)
        self.files = files
        self.text_columns: tuple[str, ...] = ()
        self.header = header
        self.encoding = files.encoding()
        self._scans_before = 0
        self._open()

    def _open(self) -> None:
        with explained(f"Reading {self.name}"):
            reader = self.files.reader(self.text_columns, self.header, self.encoding)
            self.sql(f"CREATE OR REPLACE TEMP VIEW {SOURCE} AS SELECT * FROM {reader}")
        self.describe()

    def look_for(self, wanted: list[str]) -> None:
        """Look again, since a header above columns of text looks like one more row."""
        if self.files.is_text and self.header is None and not set(wanted) <= set(self.columns):
            self.header = True
            self._open()
            if not set(wanted) & set(self.columns):
                self.header = None
                self._open()

    def examine(self, wanted: list[str]) -> None:
        if self.files.is_text:
            return
        columns = [self.columns[name] for name in dict.fromkeys(wanted) if name in self.columns]
        dates = [column for column in columns if column.family in (Family.DATE, Family.MOMENT)]
        if not dates:
            return
        ends = [f"isfinite(min({date.sql})) AND isfinite(max({date.sql}))" for date in dates]
        with explained(f"Reading {self.name}"):
            found = one_row(self.sql(f"SELECT {', '.join(ends)} FROM {SOURCE}"))
        for date, finite in zip(dates, found, strict=True):
            self.columns[date.name] = replace(date, finite=bool(finite))

    @property
    def guesses(self) -> list[str]:
        if self.encoding != LATIN:
            return []
        return [f"{self.name} is not in UTF-8 and was read as Latin-1 (Western European)."]

    @property
    def header_is_a_guess(self) -> bool:
        """Whether every column holds text, so that a row of data looks the same as a header."""
        return (
            self.files.is_text
            and self.header is None
            and all(column.family is Family.TEXT for column in self.columns.values())
            and "column0" not in self.columns
        )

    def wrongly_decoded(self, faults: list[tuple[Any, ...]]) -> bool:
        if self.encoding is not None or all(kind != "INVALID ENCODING" for kind, *_ in faults):
            return False
        self.encoding = LATIN
        self._open()
        return True

    def misjudged(self, faults: list[tuple[Any, ...]], rows: int) -> tuple[str, ...]:
        """Return columns whose type, guessed from the beginning, does not fit more than a few
        values.
        """
        counts = [(column, count) for kind, column, count, *_ in faults if kind == "CAST"]
        return tuple(column for column, count in counts if count > FEW * (rows + count) + 1)

    def as_text(self, columns: tuple[str, ...]) -> None:
        self.text_columns += columns
        self._open()

    def rows(self, columns: list[Column], condition: str) -> TableRows:
        if not self.files.is_text:
            return super().rows(columns, condition)
        # Rows that are set aside from now on count; those of earlier queries are the same ones.
        query = "SELECT coalesce(max(scan_id), 0) FROM reject_errors"
        self._scans_before = one_row(self.sql(query))[0] if self._has_rejects() else 0
        return self.kept_rows(columns, condition)

    def _has_rejects(self) -> bool:
        query = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reject_errors'"
        return bool(one_row(self.sql(query))[0])

    def rejected(self) -> list[tuple[Any, ...]]:
        if not (self.files.is_text and self._has_rejects()):
            return []
        # A row may have several faults, and counts once, for the first.
        return self.sql(
            "SELECT kind, cause, count(*), arg_min(error_message, line), min(line) FROM ("
            "SELECT line, arg_min(error_type, column_idx) AS kind, "
            "arg_min(column_name, column_idx) AS cause, "
            "arg_min(error_message, column_idx) AS error_message "
            f"FROM reject_errors WHERE scan_id > {self._scans_before} GROUP BY scan_id, file_id, "
            "line) GROUP BY kind, cause ORDER BY min(line)"
        ).fetchall()


class RelationSource(Source):
    """A relation that lives in a connection of the user's, where all queries must run."""

    def __init__(self, relation: Any) -> None:
        super().__init__("the DuckDB relation", None)
        self.relation = relation
        self.describe()

    def sql(self, query: str) -> Any:
        return self.relation.query(SOURCE, query)

    def rows(self, columns: list[Column], condition: str) -> TableRows:
        return self.kept_rows(columns, condition)

    def clear(self) -> None:
        """Drop all tables that were made in the user's connection."""
        query = f"SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, '{OURS}')"
        for (name,) in self.sql(query).fetchall():
            self.sql(f"DROP TABLE IF EXISTS temp.{identifier(name)}")


@contextmanager
def opened(data: Any, max_memory: str | int | None, header: bool | None = None) -> Iterator[Source]:
    """Yield the table behind ``data``; what DuckDB spills to disk is gone afterwards."""
    import duckdb

    if isinstance(data, duckdb.DuckDBPyRelation):
        with explained("Reading the DuckDB relation"):
            relation = RelationSource(data)
            try:
                yield relation
            finally:
                relation.clear()
        return
    files = find_files(data) if isinstance(data, str | os.PathLike) else None
    table = None if files else _registrable(data)
    with (
        tempfile.TemporaryDirectory(prefix="smartcpd-") as folder,
        duckdb.connect() as connection,
    ):
        _configure(connection, folder, max_memory)
        if files:
            yield FileSource(files, connection, header)
            return
        source = Source(f"the {type(data).__name__}", connection)
        with explained(f"Reading {source.name}"):
            connection.register(SOURCE, table)
        source.describe()
        yield source


def _configure(connection: Any, folder: str, max_memory: str | int | None) -> None:
    import duckdb

    limit = f"{max_memory}B" if isinstance(max_memory, int) else max_memory
    if limit is None:
        limit = f"{SHARE_OF_LIMIT * memory_limit(connection.sql):.0f}B"
    try:
        connection.execute(f"SET memory_limit = {literal(limit)}")
    except duckdb.Error as error:
        raise InvalidParameterError(
            f"max_memory={max_memory!r} is not an amount of memory ({reason(error)[:-1]}); "
            "write it as '4GB'."
        ) from None
    connection.execute(f"SET temp_directory = {literal(folder)}")
    # The order of rows does not matter to a group-by, and keeping it costs memory.
    connection.execute("SET preserve_insertion_order = false")
    # Where DuckDB takes a session for an interactive one, it draws on stdout.
    connection.execute("SET enable_progress_bar = false")
    # Nothing is ever fetched from a network.
    connection.execute("SET autoinstall_known_extensions = false")


def _registrable(data: Any) -> Any:
    """Return the table itself, if it is one that DuckDB can read."""
    library = type(data).__module__.split(".")[0]
    kind = type(data).__name__
    if (library, kind) in (("polars", "DataFrame"), ("polars", "LazyFrame")):
        if importlib.util.find_spec("pyarrow") is None:
            raise MissingExtraError("pyarrow", "polars", "Reading a table of Polars")
        return data.collect() if kind == "LazyFrame" else data
    if library == "pandas" and kind == "DataFrame":
        return data
    if library == "pyarrow" and (kind == "Table" or "Dataset" in kind):
        return data
    raise InvalidDataError(
        f"A table must be a path, a pandas or Polars DataFrame, an Arrow Table or Dataset or a "
        f"DuckDB relation; got {library}.{kind}."
        if library != "builtins"
        else f"A table must be a path, a data frame, an Arrow table or a DuckDB relation; got "
        f"{kind}."
    )
