"""Text files: their layout, their encoding, and the rows that do not fit in the table."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from smartcpd._data.tables.columns import Column
from smartcpd._data.tables.dialect import is_aligned, sniffed, with_header
from smartcpd._data.tables.paths import HEAD, Files, head
from smartcpd._data.tables.reading import Reading
from smartcpd._data.tables.sources import RAW, Source, TableRows
from smartcpd._data.tables.sql import explained, identifier, literal, one_row
from smartcpd._data.tables.text_file import TextFile
from smartcpd._data.tables.unpacking import encoding_of, rewritten

MOST_ROWS_TO_COUNT = 2_000_000
"""Lines are counted up to a row of this number."""
SPECIMENS = 600
"""Number of rows at the beginning that a sample has, and about as many from all over the table."""
LINES_OF_HEAD = 500


class TextSource(Source):
    """A table in text files; rows that do not fit are set aside."""

    def __init__(
        self, files: Files, connection: Any, reading: Reading, folder: str, in_order: bool
    ) -> None:
        super().__init__(repr(files.name), connection, reading)
        self.files = files
        self.folder = folder
        self.in_order = in_order
        self.one_thread = False
        """Whether values go over several lines, so that one thread has to read the file."""
        self.has_rows = len(files.paths) == 1
        self.remarks += files.notes
        if reading.header is None:
            self.reading = reading = replace(reading, header=files.header)
        self.parts = [self._part(path) for path in files.paths]
        self._name_columns()

    is_text = True

    def _part(self, path: str) -> TextFile:
        if path.lower().endswith(".zst"):
            encoding, start = None, self._unpacked_start(path)
        else:
            found = head(path)
            encoding = self.reading.encoding or encoding_of(found, len(found) < HEAD)
            start = found.decode(encoding or "utf-8", "replace").removeprefix("\ufeff")
            if len(found) == HEAD and re.search("[\r\n]", start):
                start = start[: max(start.rfind("\n"), start.rfind("\r")) + 1]
        delimiter = self.reading.delimiter or self.files.delimiter
        dialect = sniffed(start, delimiter, self.reading.header)
        parted = dialect.width > 1 and dialect.delimiter != " "
        if not parted and delimiter is None and is_aligned(start):
            path = rewritten(path, encoding or "utf-8", self.folder, squeezed=True)
            start = "".join(" ".join(line.split()) + "\n" for line in start.splitlines())
            dialect = sniffed(start, " ", self.reading.header)
        return TextFile(path, start, dialect, encoding)

    def _unpacked_start(self, path: str) -> str:
        """Return the first lines of a file that only DuckDB can unpack."""
        lines = self.sql(
            f"SELECT line FROM read_csv({literal(path)}, auto_detect = false, header = false, "
            "delim = '\x07', quote = '', escape = '', columns = {'line': 'VARCHAR'}, "
            f"ignore_errors = true) LIMIT {LINES_OF_HEAD}"
        ).fetchall()
        return "".join(f"{line or ''}\n" for (line,) in lines)

    def _name_columns(self) -> None:
        names = dict.fromkeys(name for part in self.parts for name in part.dialect.names if name)
        self.stored_columns = {name: Column(name, "VARCHAR") for name in names}
        self.columns = dict(self.stored_columns)

    def look_for(self, wanted: Sequence[str]) -> None:
        """Read the first line as names, or as data, if that is where wanted columns are."""
        if self.reading.header is not None or set(wanted) <= set(self.columns):
            return
        # A number in the first line is data as often as a name, unless all that is wanted is there.
        words = {name for name in wanted if not name.isdigit()}
        for header, names in ((True, wanted), (True, ()), (False, ())):
            before = self.parts
            by_place = not header and not words and not before[0].dialect.sure
            self.parts = [
                replace(part, dialect=with_header(part.dialect, part.start, header, names))
                for part in before
            ]
            self._name_columns()
            if by_place or words & set(self.columns) or set(wanted) <= set(self.columns):
                return
            self.parts = before
        self._name_columns()

    @property
    def has_names(self) -> bool:
        return any(part.dialect.header for part in self.parts)

    @property
    def layout(self) -> dict[str, Any]:
        """What was found out about the text of the first file."""
        part = self.parts[0]
        if self.files.made_from:
            return {"kind": self.files.made_from, "header": part.dialect.header}
        return {
            "encoding": part.encoding or "utf-8",
            "delimiter": part.dialect.delimiter,
            "header": part.dialect.header,
            "lines_above": part.dialect.above,
        }

    @property
    def guesses(self) -> list[str]:
        found = []
        part = self.parts[0]
        if part.encoding not in (None, "utf-8") and self.reading.encoding is None:
            known = {"cp1252": "Windows-1252", "latin-1": "Latin-1 (Western European)"}
            said = known.get(part.encoding, part.encoding.upper())
            sure = part.encoding.lower().startswith("utf")
            other = "" if sure else "; if letters look wrong, say encoding='cp1250' or another"
            found.append(f"{self.name} is not in UTF-8 throughout and was read as {said}{other}.")
        if part.dialect.above:
            several = part.dialect.above > 1
            lines = f"{part.dialect.above} lines" if several else "line"
            verbs = ("stand", "are") if several else ("stands", "is")
            found.append(
                f"The first {lines} of {self.name} {verbs[0]} above the table and {verbs[1]} left "
                "out."
            )
        if part.dialect.second:
            shown = part.dialect.delimiter.join(part.dialect.second)
            found.append(f"The line below the names holds no data and is left out: {shown!r}.")
        if not part.dialect.quoted:
            found.append(f"Quotes in {self.name} are taken as they are, since one is never closed.")
        return [*super().guesses, *found]

    @property
    def guess_about_header(self) -> str:
        if self.parts[0].dialect.sure:
            return ""
        if self.parts[0].dialect.header:
            names = "The first line was taken for the names of columns"
            return f"{names}; if it is data, say header=False."
        return (
            "The first line was taken for data, since its words recur; if it names columns, say "
            "header=True."
        )

    # Loading.

    def load(self, names: Sequence[str]) -> None:
        """Copy columns of the files to a table of text, in the order of the rows."""
        self.connection.execute("SET preserve_insertion_order = true")
        with explained(f"Reading {self.name}"):
            self._load_as_it_is(names)
            if any(kind == "INVALID ENCODING" for kind, *_ in self.rejected()):
                self._in_utf8()
                self._load_as_it_is(names)
            lost = any(kind == "UNQUOTED VALUE" for kind, *_ in self.rejected())
            if lost or (self.one_thread and self._has_swallowed_rows()):
                self._without_quotes(names)
        in_order = str(self.in_order).lower()
        self.connection.execute(f"SET preserve_insertion_order = {in_order}")

    def _load_as_it_is(self, names: Sequence[str]) -> None:
        import duckdb

        for part in self.parts:
            if part.encoding is not None and not part.path.endswith(".utf8"):
                self._in_utf8()
                break
        try:
            self._create(names, any(part.dialect.multiline for part in self.parts))
        except duckdb.Error as error:
            if "quoted new lines" in str(error):
                self._create(names, one_thread=True)
            elif "new_line" in str(error) or "invalid state" in str(error):
                # Files with several kinds of line breaks are written anew with one.
                self._in_utf8()
                self._create(names, one_thread=True)
            else:
                raise

    def _create(self, names: Sequence[str], one_thread: bool) -> None:
        for table in ("reject_errors", "reject_scans"):
            self.sql(f"DROP TABLE IF EXISTS {table}")
        self.one_thread = one_thread
        groups: dict[tuple[object, ...], list[TextFile]] = {}
        for part in self.parts:
            groups.setdefault((*part.dialect.layout, part.dialect.quoted), []).append(part)
        selects = [self._select(parts, names, one_thread) for parts in groups.values()]
        query = " UNION ALL BY NAME ".join(selects)
        self.sql(f"CREATE OR REPLACE TEMP TABLE {RAW} AS {query}")

    def _select(self, parts: list[TextFile], names: Sequence[str], one_thread: bool) -> str:
        dialect = parts[0].dialect
        paths = replace(self.files, paths=tuple(part.path for part in parts)).listed
        quote = dialect.quote if dialect.quoted else ""
        options = [
            "auto_detect = false, header = false, null_padding = true, store_rejects = true",
            "rejects_limit = 0",
            f"delim = {literal(dialect.delimiter)}, quote = {literal(quote)}",
            f"escape = {literal(dialect.escape if dialect.quoted else '')}",
            f"skip = {dialect.skip}",
            "columns = {" + ", ".join(f"'c{i}': 'VARCHAR'" for i in range(dialect.width)) + "}",
        ]
        if one_thread:
            options.append("parallel = false")
        wanted = [
            f"c{i} AS {identifier(name)}"
            for i, name in enumerate(dialect.names)
            if name and name in names
        ]
        # DuckDB would take the sign for a comment in the middle of a value as well.
        kept = " WHERE c0 IS NULL OR NOT starts_with(ltrim(c0), '#')" if dialect.comments else ""
        query = f"FROM read_csv({paths}, {', '.join(options)}){kept}"
        return f"SELECT {', '.join(wanted) or 'c0'} {query}"

    def _in_utf8(self) -> None:
        """Write the files anew in UTF-8."""
        self.parts = [
            replace(part, path=rewritten(part.path, encoding, self.folder), encoding=encoding)
            for part in self.parts
            for encoding in [part.encoding_throughout()]
        ]

    def _has_swallowed_rows(self) -> bool:
        """Whether a value has whole rows in it, as after a quote that is never closed."""
        part = self.parts[0]
        if part.ends_in_quotes():
            return True
        sign = re.escape(part.dialect.delimiter)
        row = rf"\n([^\n{sign}]*{sign}){{{part.dialect.width - 1}}}[^\n{sign}]*(\n|$)"
        values = ", ".join(f"c{i}" for i in range(part.dialect.width))
        rows = self._select([part], (), one_thread=True).partition(" FROM ")[2]
        found = f"regexp_matches(concat_ws(' ', {values}), {literal(row)})"
        query = f"SELECT count(*) FROM {rows} {'AND' if ' WHERE ' in rows else 'WHERE'} {found}"
        return part.dialect.width > 1 and bool(one_row(self.sql(query))[0])

    def _without_quotes(self, names: Sequence[str]) -> None:
        """Read once more with quotes as they are, and keep that if more rows come of it."""
        (before,) = one_row(self.sql(f"SELECT count(*) FROM {RAW}"))
        lost, parts = len(self.rejected()), self.parts
        self.parts = [replace(p, dialect=replace(p.dialect, quoted=False)) for p in parts]
        self._create(names, one_thread=False)
        (after,) = one_row(self.sql(f"SELECT count(*) FROM {RAW}"))
        if after <= before or len(self.rejected()) > lost:
            self.parts = parts
            self._create(names, any(part.dialect.multiline for part in parts))

    # What does not fit.

    def rejected(self) -> list[tuple[Any, ...]]:
        query = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reject_errors'"
        if not one_row(self.sql(query))[0]:
            return []
        # A row may have several faults, and counts once, for the first.
        return self.sql(
            "SELECT kind, cause, count(*), arg_min(error_message, line), min(line) FROM ("
            "SELECT line, arg_min(error_type, column_idx) AS kind, "
            "arg_min(column_name, column_idx) AS cause, "
            "arg_min(error_message, column_idx) AS error_message "
            "FROM reject_errors GROUP BY scan_id, file_id, line) GROUP BY kind, cause "
            "ORDER BY min(line)"
        ).fetchall()

    def line_of(self, row: int | None) -> int | None:
        """Return the line of the file on which a row begins."""
        if row is None or len(self.parts) > 1 or row > MOST_ROWS_TO_COUNT:
            return None
        part = self.parts[0]
        aside = {line for (line,) in self._lines_set_aside()}
        seen = -1
        try:
            for index, (fields, line) in enumerate(part.records()):
                is_row = fields and index >= part.dialect.skip and line not in aside
                if is_row and not (part.dialect.comments and fields[0].lstrip().startswith("#")):
                    seen += 1
                if seen == row:
                    return line
        except csv.Error:
            pass
        return None

    def _lines_set_aside(self) -> list[tuple[int]]:
        if not self.rejected():
            return []
        return self.sql("SELECT DISTINCT line FROM reject_errors").fetchall()

    def rows(self, columns: list[Column], condition: str) -> TableRows:
        return self.kept_rows(columns, condition)

    @property
    def spread(self) -> str:
        (count,) = one_row(self.sql(f"SELECT count(*) FROM {RAW}"))
        step = max(count // SPECIMENS, 1)
        return f" WHERE rowid < {SPECIMENS} OR rowid % {step} = 0"

    @property
    def decimal_comma(self) -> bool:
        return any(part.dialect.decimal_comma for part in self.parts)
