"""Tables behind one interface: files, data frames, Arrow tables and relations."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from smartcpd._data.tables.columns import Column, Family
from smartcpd._data.tables.kinds import Examiner
from smartcpd._data.tables.melting import Melted, melting
from smartcpd._data.tables.paths import Files
from smartcpd._data.tables.places import Places, places_in
from smartcpd._data.tables.reading import Reading
from smartcpd._data.tables.sql import OURS, SOURCE, explained, identifier, literal, one_row

RAW = f"{OURS}_raw"
"""The name of the table as it is stored."""


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
    """A table that can be queried as often as needed, under the name `SOURCE`.

    It is stored under the name `RAW`; `understand` finds out what its columns hold.
    """

    is_text = False
    """Whether it has no types, so that what columns hold is found out from text."""
    has_rows = False
    """Whether its rows have numbers, in the order of the file."""
    raw = RAW

    def __init__(self, name: str, connection: Any, reading: Reading) -> None:
        self.name = name
        self.connection = connection
        self.reading = reading
        self.columns: dict[str, Column] = {}
        self.stored_columns: dict[str, Column] = {}
        self.remarks: list[str] = []
        self.melted: Melted | None = None
        self.places: list[Places] = []
        self.paths: tuple[str, ...] = ()
        """The files that queries read, once they are allowed to read no others."""

    def offer(self, names: Sequence[str] = (), bins: Mapping[str, Any] | None = None) -> None:
        """Have the columns that the table has once it is melted, and once modes that name two
        coordinates are columns, if the user wants that.
        """
        self.melted = melting(self.reading.melt, self.stored_columns)
        if self.melted is not None:
            self.columns = self.melted.offered(self.stored_columns)
        self.places = places_in(names, bins, list(self.columns))
        self.columns |= {place.name: Column(place.name, "VARCHAR") for place in self.places}

    def sql(self, query: str) -> Any:
        """Return a relation, which is not computed yet, or run a statement."""
        return self.connection.sql(query)

    def describe(self) -> None:
        """Find out the columns."""
        with explained(f"Reading {self.name}"):
            relation = self.sql(f"SELECT * FROM {self.raw}")
            pairs = zip(relation.columns, relation.types, strict=True)
            self.stored_columns = {name: Column(name, str(kind)) for name, kind in pairs}
        self.columns = dict(self.stored_columns)

    def load(self, names: Sequence[str]) -> None:
        """Have these columns ready under the name `raw`."""

    def understand(self, asked: Mapping[str, str | None], mentioned: str = "") -> None:
        """Find out what columns hold, and give them to queries as that.

        Parameters
        ----------
        asked : mapping
            From the columns that are used to what they must be, if that is known.
        mentioned : str
            An SQL condition; the columns that it names are read too.
        """
        asked = dict(asked)
        for name in self.stored_columns:
            if name not in asked and name.lower() in mentioned.lower():
                asked[name] = None
        self.load([*asked, *(self.melted.columns if self.melted else ())])
        with explained(f"Reading {self.name}"):
            if self.melted is not None:
                self._melt(self.melted)
            examiner = Examiner(
                self.sql,
                self.raw,
                self.reading,
                self.is_text,
                self.spread if self.has_rows else "",
                self.decimal_comma,
            )
            for name, what in asked.items():
                if name in self.stored_columns:
                    column = examiner.decide(self.stored_columns[name], what)
                    self.columns[name] = self._with_line(replace(column, na=self.reading.na))
            self._define(self.columns.values())
            self.lock()

    def lock(self) -> None:
        """See to it that no query reads or writes anything else from now on."""
        paths = ", ".join(map(literal, self.paths))
        for setting in (
            f"allowed_paths = [{paths}]",
            "python_enable_replacements = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self.connection.execute(f"SET {setting}")

    def _melt(self, melted: Melted) -> None:
        """Make rows of columns, before anything is found out about them."""
        query = melted.query(self.raw, self.stored_columns)
        table = f"{OURS}_melted"
        self.sql(f"CREATE OR REPLACE TEMP TABLE {table} AS {query}")
        self.raw, self.has_rows = table, False
        self.describe()

    def _with_line(self, column: Column) -> Column:
        if column.unread is None or not self.has_rows:
            return column
        line = self.line_of(column.unread.row)
        return replace(column, unread=replace(column.unread, line=line))

    def _define(self, columns: Iterable[Column]) -> None:
        """Give columns to queries as what they hold."""
        self.sql(f"CREATE OR REPLACE TEMP VIEW {SOURCE} AS {self._defined(columns)}")

    def _defined(self, columns: Iterable[Column]) -> str:
        """SQL of the table with columns as what they hold, and places beside them."""
        read = [f"{c.projected} AS {c.sql}" for c in columns if c.reads is not None]
        instead = f" REPLACE ({', '.join(read)})" if read else ""
        query = f"SELECT *{instead} FROM {self.raw}"
        if not self.places:
            return query
        return f"SELECT *, {', '.join(p.sql(self.columns) for p in self.places)} FROM ({query})"

    def line_of(self, row: int | None) -> int | None:
        """Return the line of the file on which a row begins, if it is known."""
        return None

    @property
    def spread(self) -> str:
        """A condition that chooses rows all over the table."""
        return ""

    @property
    def has_names(self) -> bool:
        """Whether its columns have names of their own; else numbers say which one is meant."""
        return True

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers were seen that have a decimal comma for sure."""
        return False

    def rows(self, columns: list[Column], condition: str) -> TableRows:
        """Return the rows that fulfil a condition; columns are quick to read several times."""
        return TableRows(self.name, SOURCE + condition, self.sql)

    def kept_rows(self, columns: list[Column], condition: str) -> TableRows:
        """Return such rows from a copy that DuckDB can read several times."""
        table = f"{OURS}_rows"
        needed = ", ".join(dict.fromkeys(column.sql for column in columns))
        self.sql(f"DROP TABLE IF EXISTS {table}")
        self.sql(f"CREATE TEMP TABLE {table} AS SELECT {needed} FROM {SOURCE}{condition}")
        return TableRows(self.name, table, self.sql)

    def look_for(self, wanted: Sequence[str]) -> None:
        """Look once more for columns that were not found; only text files have another reading."""

    def examine(self, wanted: Sequence[str]) -> None:
        """Learn more about columns where that costs next to nothing: Parquet has statistics."""

    def rejected(self) -> list[tuple[Any, ...]]:
        """Return rows that could not be read: kind, column, count, message and line of the
        first.
        """
        return []

    @property
    def guesses(self) -> list[str]:
        """Return what was decided about the table, in sentences."""
        return [*self.remarks, *(note for c in self.columns.values() for note in c.notes)]

    @property
    def guess_about_header(self) -> str:
        """Say what the first line was taken for, if it might be something else."""
        return ""

    @property
    def layout(self) -> dict[str, Any]:
        """What was found out about how the file is written."""
        return {}


class FileSource(Source):
    """A table in files that have types, which DuckDB reads."""

    def __init__(self, files: Files, connection: Any, reading: Reading) -> None:
        super().__init__(repr(files.name), connection, reading)
        self.files = files
        # What DuckDB opens is checked as it was written: as a pattern.
        self.paths = (*files.paths, *map(glob.escape, files.paths))
        with explained(f"Reading {self.name}"):
            self.sql(f"CREATE OR REPLACE TEMP VIEW {RAW} AS SELECT * FROM {self._reader()}")
        self.describe()
        if files.format == "json":
            self._flatten()

    def _reader(self) -> str:
        options = [self.files.listed]
        if len(self.files.paths) > 1:
            options.append("union_by_name = true")
        if self.files.format == "json":
            return f"read_json({', '.join(options)}, sample_size = -1)"
        return f"read_parquet({', '.join(options)})"

    def _flatten(self) -> None:
        """Find the rows in JSON: in a list under a name, or as values of several types."""
        lists = [c for c in self.columns.values() if re.fullmatch(r"STRUCT\(.*\)\[\]", c.type)]
        with explained(f"Reading {self.name}"):
            (count,) = one_row(self.sql(f"SELECT count(*) FROM (SELECT 1 FROM {RAW} LIMIT 2)"))
            if count == 1 and len(lists) == 1:
                query = f"SELECT unnest({lists[0].sql}, max_depth := 2) FROM {self._reader()}"
                self.sql(f"CREATE OR REPLACE TEMP VIEW {RAW} AS {query}")
                self.describe()
            mixed = [c for c in self.columns.values() if c.type == "JSON"]
            if mixed:
                texts = ", ".join(f"({c.sql} ->> '$') AS {c.sql}" for c in mixed)
                query = f"SELECT * REPLACE ({texts}) FROM {self._reader()}"
                self.sql(f"CREATE OR REPLACE TEMP VIEW {RAW} AS {query}")
                self.describe()

    def examine(self, wanted: Sequence[str]) -> None:
        if self.files.format != "parquet":
            return
        columns = [self.columns[name] for name in dict.fromkeys(wanted) if name in self.columns]
        dates = [
            column
            for column in columns
            if column.family in (Family.DATE, Family.MOMENT) and column.reads is None
        ]
        if not dates:
            return
        ends = [f"isfinite(min({date.sql})) AND isfinite(max({date.sql}))" for date in dates]
        with explained(f"Reading {self.name}"):
            found = one_row(self.sql(f"SELECT {', '.join(ends)} FROM {SOURCE}"))
        for date, finite in zip(dates, found, strict=True):
            self.columns[date.name] = replace(date, finite=bool(finite))


class RelationSource(Source):
    """A relation that lives in a connection of the user's, where all queries must run."""

    raw = SOURCE

    def __init__(self, relation: Any, reading: Reading) -> None:
        super().__init__("the DuckDB relation", None, reading)
        self.relation = relation
        self.describe()

    def sql(self, query: str) -> Any:
        return self.relation.query(SOURCE, query)

    def _melt(self, melted: Melted) -> None:
        self.relation = self.sql(melted.query(SOURCE, self.stored_columns))
        self.describe()

    def lock(self) -> None:
        """Leave the connection as it is, which is the user's."""

    def _define(self, columns: Iterable[Column]) -> None:
        self.relation = self.sql(self._defined(columns))

    def rows(self, columns: list[Column], condition: str) -> TableRows:
        return self.kept_rows(columns, condition)

    def clear(self) -> None:
        """Drop all tables that were made in the user's connection."""
        query = f"SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, '{OURS}')"
        for (name,) in self.sql(query).fetchall():
            self.sql(f"DROP TABLE IF EXISTS temp.{identifier(name)}")
