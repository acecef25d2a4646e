"""The door through which a table comes: whatever it is becomes a source of queries."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from smartcpd._data.tables.paths import Files, find_files
from smartcpd._data.tables.reading import Reading
from smartcpd._data.tables.sources import RAW, FileSource, RelationSource, Source
from smartcpd._data.tables.sql import explained, literal, memory_limit, reason
from smartcpd._data.tables.texts import TextSource
from smartcpd.errors import InvalidDataError, InvalidParameterError, MissingExtraError

SHARE_OF_LIMIT = 5 / 8
"""The share of the limit that DuckDB sets itself (four fifths of the memory) that it may use."""


@contextmanager
def opened(
    data: Any,
    max_memory: str | int | None = None,
    reading: Reading | None = None,
    in_order: bool = False,
) -> Iterator[Source]:
    """Yield the table behind ``data``; what DuckDB spills to disk is gone afterwards.

    With ``in_order`` queries give rows in the order of the table.
    """
    import duckdb

    reading = reading or Reading()
    if isinstance(data, duckdb.DuckDBPyRelation):
        with explained("Reading the DuckDB relation"):
            relation = RelationSource(data, reading)
            try:
                yield relation
            finally:
                relation.clear()
        return
    is_path = isinstance(data, str | os.PathLike)
    table = None if is_path else _registrable(data)
    with (
        tempfile.TemporaryDirectory(prefix="smartcpd-") as folder,
        duckdb.connect() as connection,
    ):
        _configure(connection, folder, max_memory, in_order)
        if is_path:
            yield _of_files(find_files(data, folder), connection, reading, folder, in_order)
            return
        yield _registered(f"the {type(data).__name__}", table, connection, reading)


def _of_files(
    files: Files, connection: Any, reading: Reading, folder: str, in_order: bool
) -> Source:
    if files.format == "text":
        return TextSource(files, connection, reading, folder, in_order)
    if files.format == "arrow":
        return _registered(repr(files.name), _arrow(files), connection, reading)
    return FileSource(files, connection, reading)


def _registered(name: str, table: Any, connection: Any, reading: Reading) -> Source:
    source = Source(name, connection, reading)
    with explained(f"Reading {source.name}"):
        connection.register(RAW, table)
    source.describe()
    return source


def _arrow(files: Files) -> Any:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtraError("pyarrow", "arrow", "Reading an Arrow or Feather file")
    import pyarrow as pa
    from pyarrow import dataset

    try:
        found = dataset.dataset(list(files.paths), format="ipc")
        # Nobody looks at where texts begin and end before they are followed there.
        for batch in found.to_batches():
            batch.validate(full=True)
        return found
    except (pa.ArrowException, OSError, UnicodeError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InvalidDataError(f"{files.name!r} cannot be read as an Arrow file: {why}.") from None


def _configure(connection: Any, folder: str, max_memory: str | int | None, in_order: bool) -> None:
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
    connection.execute(f"SET preserve_insertion_order = {str(in_order).lower()}")
    # Where DuckDB takes a session for an interactive one, it draws on stdout.
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    # Nothing is ever fetched from a network, and no code is loaded.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")


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
