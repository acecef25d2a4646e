"""`from_table`: the whole way from a table to a tensor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smartcpd._common.parameters import check_integer
from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Kind, Mode
from smartcpd._data.storage.sparse import SparseTensor
from smartcpd._data.tables.account import Account
from smartcpd._data.tables.counting import CountedCells, cells
from smartcpd._data.tables.keys import TABLE, Key, Wish
from smartcpd._data.tables.measure import Measure, measure
from smartcpd._data.tables.melting import VALUE
from smartcpd._data.tables.opening import opened
from smartcpd._data.tables.places import told_by
from smartcpd._data.tables.reading import as_reading
from smartcpd._data.tables.remarks import about_labels, about_values
from smartcpd._data.tables.sources import Source, TableRows
from smartcpd._data.tables.sql import SOURCE, explained, listed, one_row, reason
from smartcpd._data.tables.streaming import Pieces, pieces
from smartcpd._data.tables.wishes import asked_of, column_names, find_column, mode_names, wishes
from smartcpd.errors import InvalidDataError, InvalidParameterError
from smartcpd.partitions import write_pieces


def from_table(
    data: Any,
    modes: str | Iterable[str],
    value: str | None = None,
    agg: str = "auto",
    *,
    bins: Mapping[str, Any] | None = None,
    top: Mapping[str, int] | None = None,
    rest: str = "gather",
    where: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    date_format: str | Mapping[str, str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na: str | Sequence[str] | None = None,
    melt: Mapping[str, Any] | None = None,
    absent: str | None = None,
    allow_lost_rows: bool = False,
    max_labels: int = 1_000_000,
    max_memory: str | int | None = None,
    out: str | os.PathLike[str] | None = None,
) -> LabelledTensor:
    """Aggregate a table of events to a sparse tensor whose rows keep their names.

    Parameters
    ----------
    data : path, data frame, Arrow table or DuckDB relation
        A file of text (CSV, TSV and the like), Parquet, JSON, JSON lines, Feather or Arrow, a
        workbook (``"file.xlsx::sheet"``) or SQLite database (``"file.db::table"``), also packed
        (``.gz``, ``.zip``, ``.bz2``, ``.xz``, ``.zst``); a folder or a pattern of such files, a
        URL, ``"-"`` for standard input; a DataFrame of pandas or Polars, a LazyFrame, an Arrow
        Table or Dataset.
    modes : list of str, or text with commas
        Columns, each of which becomes a mode of the tensor. ``"time@hour"`` is column ``time``
        with a bin of its own, so that one column can give several modes.
    value : str, optional
        A column of numbers. Without it events are counted.
    agg : {"auto", "count", "sum", "mean", "any"}
        What a cell holds: by default the sum of the values if there are any, else the number of
        events; ``"any"`` is 1 where something happened.
    bins : dict, optional
        From modes or columns to bins. For dates and times periods ``"15min"``, ``"1h"``,
        ``"1d"``, ``"1w"``, ``"1mo"``, ``"1y"`` and cycles ``"hour"``, ``"weekday"``,
        ``"month"``; for numbers ``"20q"`` (quantiles), ``10`` (equal ranges) or ``"0.01"``
        (ranges of that width, as for latitude and longitude). By default dates
        are days, a period for times is chosen from their range, and everything else is a label.
    top : dict, optional
        How many of the most frequent labels of a mode to keep.
    rest : {"gather", "drop"}
        Whether events with other labels are gathered in one row ``(other)`` or left out.
    where : str, optional
        An SQL condition on the columns; only rows that fulfil it are used.
    header : bool, optional
        Whether the first line of a text file names its columns; found out by default. Without
        names they are ``column0``, ``column1``, ...
    delimiter, encoding : str, optional
        What parts the columns of a text file, and its encoding; found out by default.
    date_format : str or dict, optional
        How dates are written, as for `datetime.strptime`, or ``"day-first"``,
        ``"month-first"``, ``"year-first"``, ``"epoch"``, ``"epoch-ms"``, ``"epoch-us"``,
        ``"epoch-ns"``, ``"excel"``; for all columns or by column. By default the format that
        all values of a column have.
    decimal, thousands : str, optional
        The signs in numbers that are text; by default those that all values of a column have.
    na : str or list of str, optional
        The words that mean a missing value, in place of ``NA``, ``N/A``, ``null`` and the like.
    melt : dict, optional
        For wide tables: ``{"month": "JAN:DEC"}`` makes a mode ``month`` of the columns from
        ``JAN`` to ``DEC``, whose numbers become a column ``value``.
    absent : {"zero", "missing"}, optional
        What cells without rows are. By default zero for counts and sums of events, and missing
        for measurements: means, melted columns, and real numbers of which no cell has two.
    allow_lost_rows : bool
        Whether to go on where more than a fifth of the rows cannot be used.
    max_labels : int
        A mode with more rows is refused.
    max_memory : str or int, optional
        What the aggregation may use, such as ``"4GB"``, before it goes to disk; by default half
        of the memory. A DuckDB relation keeps the limit of its own connection.
    out : path, optional
        A folder to write the tensor to, with a name that ends with ``.parts``, for tables whose
        cells exceed the memory: they are then never there all at once. One that exists is
        replaced.

    Returns
    -------
    LabelledTensor
        Its ``notes`` say how many rows were left out and why, and what was chosen. With ``out``
        its tensor is a `PartitionedTensor`, which fits read part by part if it is large.

    Examples
    --------
    >>> import pandas as pd
    >>> import smartcpd
    >>> table = pd.DataFrame({"who": ["ann", "bob", "ann"], "what": ["tea", "tea", "rye"]})
    >>> smartcpd.from_table(table, ["who", "what"])
    LabelledTensor(who 2 x what 2; SparseTensor(2x2, 3 nonzeros, 75 %, uint8))
    """
    names = mode_names(modes)
    check_integer("max_labels", max_labels, at_least=2)
    if out is not None and not os.fspath(out).lower().endswith(".parts"):
        raise InvalidParameterError(f"out must end with '.parts'; got {os.fspath(out)!r}.")
    if absent not in (None, "zero", "missing"):
        raise InvalidParameterError(f"absent must be 'zero' or 'missing'; got {absent!r}.")
    reading = as_reading(header, delimiter, encoding, decimal, thousands, na, date_format, melt)
    value = None if value is None else str(value)
    with opened(data, max_memory, reading) as source:
        wanted = told_by(column_names(names, value), source.columns)
        source.look_for([name for name in wanted if name not in (*(melt or ()), VALUE)])
        source.offer(names, bins)
        if source.melted is not None and value is None:
            value = source.melted.value
        request = Request(names, value, agg, bins, top, rest, where, absent, allow_lost_rows)
        source.understand(asked_of(source, names, bins, value), where or "")
        source.examine(wanted)
        _check_where(source, where)
        with explained(f"Aggregating {source.name}"):
            aggregate = cells if out is None else pieces
            found, absence, account = _aggregated(source, request, max_labels, aggregate)
            for mode, used in zip(found.modes, found.used, strict=True):
                _note_gaps(mode, used, account)
            if out is not None:
                tensor = _written(out, found, absence, account.notes)
    if out is None:
        shape = tuple(len(mode) for mode in found.modes)
        tensor = SparseTensor(found.indices, found.values, shape, absence)
    account.report()
    orders = {column.name: column.order for column in source.columns.values() if column.order}
    return LabelledTensor(tensor, found.modes, account.notes, orders)


@dataclass(frozen=True)
class Request:
    """The arguments of `from_table` that say what the tensor should hold."""

    names: list[str]
    value: str | None
    agg: str
    bins: Mapping[str, Any] | None
    top: Mapping[str, int] | None
    rest: str
    where: str | None
    absent: str | None
    allow_lost_rows: bool

    @property
    def condition(self) -> str:
        # The condition is on lines of its own, so that a comment in it ends.
        return "" if self.where is None else f" WHERE (\n{self.where}\n)"


def _written(
    out: str | os.PathLike[str], found: Pieces, absent: str, notes: tuple[str, ...]
) -> Any:
    """Write the cells straight from the group-by to a folder of parts."""
    shape = [len(mode) for mode in found.modes]
    return write_pieces(out, found, shape, absent, modes=found.modes, notes=notes)


Aggregation = Callable[[TableRows, Sequence[Key], Measure, int, Account], Any]


def _aggregated(
    source: Source, request: Request, max_labels: int, aggregate: Aggregation
) -> tuple[Any, str, Account]:
    """Return the cells of the tensor, what the others are, and an account of what is left out."""
    wished = wishes(source, request.names, request.bins, request.top, request.rest)
    column = None if request.value is None else find_column(source, request.value)
    measured = measure(request.agg, column)
    columns = [wish.column for wish in wished] + ([] if column is None else [column])
    rows = source.rows(columns, request.condition)
    (count,) = one_row(rows.sql(f"SELECT count(*) FROM {rows.table}"))
    account = Account()
    account.rejected(source.rejected())
    account.decide(*source.guesses)
    if not count:
        raise _nothing(source, request.where, account)
    keys = _keys(rows, wished)
    for key in keys:
        account.decide(*key.notes)
    found, informed = aggregate(rows, keys, measured, max_labels, account)
    tally = found.tally
    absence, why = informed.absent(request.absent, source.melted is not None, tally.most)
    account.decide(why, *about_values(rows, informed))
    if isinstance(found, CountedCells):
        account.decide(*about_labels(found.modes, found.indices, found.values))
    # A row without a value says that its cell is missing, where cells can be.
    lost = tally.lost + (tally.valueless if absence == "zero" else 0)
    account.judge(lost, tally.rows, request.allow_lost_rows)
    return found, absence, account


def _keys(rows: TableRows, wished: Sequence[Wish]) -> list[Key]:
    """Find out in one query what keys depend on."""
    wanted = [[fact.replace(TABLE, rows.table) for fact in wish.facts] for wish in wished]
    found = rows.answers(wanted)
    return [wish.resolve(facts) for wish, facts in zip(wished, found, strict=True)]


def _check_where(source: Source, where: str | None) -> None:
    """Raise an error if the condition is not valid SQL, before any work is done."""
    import duckdb

    if where is None:
        return
    query = f"SELECT 1 FROM {SOURCE} WHERE (\n{where}\n) LIMIT 0"
    try:
        if len(duckdb.extract_statements(query)) != 1:
            raise InvalidParameterError(f"where={where!r} must be one condition, without ';'.")
        source.sql(query).fetchall()
    except duckdb.Error as error:
        raise InvalidParameterError(
            f"where={where!r} is not an SQL condition on this table: {reason(error)} "
            f"Its columns are {listed(list(source.columns))}."
        ) from None


def _nothing(source: Source, where: str | None, account: Account) -> InvalidDataError:
    """Return the error that says why there is no row."""
    if where is not None and source.sql(f"SELECT 1 FROM {SOURCE} LIMIT 1").fetchall():
        return InvalidDataError(
            f"No row of {source.name} fulfils where={where!r}; loosen the condition."
        )
    why = " ".join(account.losses)
    return InvalidDataError(f"There is no row in {source.name}. {why}".strip())


def _note_gaps(mode: Mode, used: int, account: Account) -> None:
    """Warn of a time axis that is mostly empty, which is seldom what was meant."""
    if mode.kind is not Kind.TIME:
        return
    empty = len(mode) - used
    if empty > len(mode) / 2:
        first, last = mode.text()[0], mode.text()[-1]
        account.decide(
            f"{empty:,} of the {len(mode):,} periods of {mode.name!r} from {first} to {last} are "
            "empty; a longer bin, or where= against impossible dates, makes a smaller tensor."
        )
