"""SQL as text: names and literals quoted, and DuckDB's errors as one sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smartcpd.errors import InvalidDataError

SOURCE = "_smartcpd_source"
"""The name of the table of events."""
OURS = "_smartcpd"
"""The beginning of the names of all tables that are made here."""


X = "_smartcpd_x"
"""What stands, in the SQL of how a column is read, for its value as it is stored."""


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def number(value: float | int) -> str:
    """Write a number exactly as it is, never as a decimal."""
    return str(value) if isinstance(value, int) else f"CAST({literal(repr(value))} AS DOUBLE)"


def floor_divide(dividend: str, divisor: int) -> str:
    """Return SQL that rounds a quotient down also below zero, where SQL's division rounds up."""
    if divisor == 1:
        return dividend
    return f"(({dividend}) // {divisor} - CAST(({dividend}) % {divisor} < 0 AS INTEGER))"


def reason(error: BaseException) -> str:
    """Return what DuckDB said, without its type, its advice and its picture of the query."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = re.sub(r"^([A-Z]\w* )+Error: ", "", lines[0]) if lines else type(error).__name__
    return first.rstrip(".!") + "."


def listed(names: Sequence[str], most: int = 20) -> str:
    """List names as a person would."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn any error of DuckDB into one sentence that begins with ``what``."""
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        # DuckDB raises this error for Ctrl-C in the middle of a query, and for text that is none.
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from None
        if type(error) is not RuntimeError:
            raise
        raise InvalidDataError(
            f"{what} failed: what DuckDB found in it is not what it says ({reason(error)[:-1]}); "
            "it is damaged."
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise InvalidDataError(
            f"{what} needs more memory than allowed: {reason(error)} Raise max_memory, or make "
            "fewer cells with bins=, top= or where=."
        ) from error
    except (duckdb.Error, UnicodeDecodeError) as error:  # the latter quotes what is no text
        raise InvalidDataError(f"{what} failed: {reason(error)}") from error


def one_row(rows: Any) -> tuple[Any, ...]:
    """Return the only row of a query."""
    return rows.fetchall()[0]


def memory_limit(sql: Callable[[str], Any]) -> float:
    """Return the bytes that DuckDB may use."""
    # A limit that was switched off is written in units that DuckDB does not read.
    query = "SELECT try(parse_formatted_bytes(current_setting('memory_limit')))"
    (limit,) = one_row(sql(query))
    return math.inf if limit is None else float(limit)
