"""Parquet files of entries, by DuckDB: indices ``i0``, ``i1``, ..., ``value`` and ``weight``."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from smartcpd._data.storage.entries import Entries
from smartcpd.errors import InvalidDataError

TABLE = "_smartcpd_entries"


@cache
def _database(process: int) -> Any:
    """Return the database of a process, since opening one takes long for a small part."""
    import duckdb  # not needed by those who fit arrays

    connection = duckdb.connect()
    # The connection is closed before the interpreter takes DuckDB apart, which complains otherwise.
    atexit.register(connection.close)
    # One thread is enough: files are read and written next to a fit that has use for the others.
    # And what was read is kept by whoever asked for it, and nobody else.
    connection.execute("SET threads = 1")
    connection.execute("SET enable_external_file_cache = false")
    return connection


def _connection() -> Any:
    """Return a connection to the database, for one thread."""
    return _database(os.getpid()).cursor()


def write_entries(path: Path, entries: Entries) -> None:
    """Write entries to a file."""
    from smartcpd._data.tables.sql import literal

    columns = {f"i{n}": column for n, column in enumerate(entries.columns)}
    columns["value"] = entries.values
    if entries.weights is not None:
        columns["weight"] = entries.weights
    with _connection() as connection:
        connection.register(TABLE, columns)
        connection.execute(
            f"COPY (SELECT * FROM {TABLE}) TO {literal(str(path))} "
            "(FORMAT parquet, COMPRESSION zstd)"
        )


def read_entries(path: Path, order: int, weighted: bool) -> Entries:
    """Read the entries of a file."""
    import duckdb

    from smartcpd._data.tables.sql import literal, reason

    names = [f"i{n}" for n in range(order)] + ["value"] + ["weight"] * weighted
    try:
        with _connection() as connection:
            found = connection.execute(
                f"SELECT {', '.join(names)} FROM read_parquet({literal(str(path))})"
            ).fetchnumpy()
    except (duckdb.Error, UnicodeDecodeError) as error:  # which quotes what is no text
        raise InvalidDataError(
            f"{path} cannot be read: {reason(error)} Write the folder anew."
        ) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from None
        raise
    if any(np.ma.is_masked(found[name]) for name in names):
        raise InvalidDataError(f"{path} has cells without a value; write the folder anew.")
    columns = [np.asarray(found[name]) for name in names]
    return Entries(columns[:order], columns[order], columns[order + 1] if weighted else None)
