"""The group-by that turns rows of a table into cells, and cells into indices and values.

Rows that lack something get numbers of their own, so that one pass counts them on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.tables import sorting
from smartcpd._data.tables.account import Account
from smartcpd._data.tables.fetching import fetched
from smartcpd._data.tables.keys import Key
from smartcpd._data.tables.measure import Measure
from smartcpd._data.tables.slots import Slots, ranges_wanted, slots
from smartcpd._data.tables.sources import TableRows
from smartcpd._data.tables.sql import memory_limit
from smartcpd.errors import InvalidDataError

WORD = 62
"""Number of bits of a 64-bit signed integer that are used."""
SHORT_WORD = 31
"""Number of bits of a 32-bit signed integer that are used."""
MANY = 1 << 20
"""Up to so many possible cells a hash table is used, which then stays in the processor's cache."""
SHARE_OF_LIMIT = 1 / 2
"""The share of the allowed memory that rows to be sorted may take."""


@dataclass(frozen=True)
class CountedCells:
    """What a tensor is made of."""

    modes: tuple[Mode, ...]
    used: tuple[int, ...]
    """How many rows of each mode have a cell."""
    indices: tuple[np.ndarray, ...]
    values: np.ndarray
    tally: Tally


@dataclass(frozen=True)
class CountingPlan:
    """How rows become cells: a number for each key, and which of them share a word."""

    numbered: list[Slots]
    words: list[list[int]]
    measure: Measure
    count: int
    """Number of rows of the table."""

    @property
    def width(self) -> int:
        """The bits of the integers that words are made of: half as many bytes take less time."""
        return 32 if sum(slot.bits for slot in self.numbered) < SHORT_WORD else 64


def planned(
    rows: TableRows, keys: Sequence[Key], measure: Measure, max_labels: int
) -> CountingPlan:
    """Learn what the numbers depend on."""
    wanted = [ranges_wanted(key) for key in keys]
    (count,), facts, *ranges = rows.answers([["count(*)"], measure.facts(), *wanted])
    numbered = [
        slots(i, key, found, rows, count, max_labels)
        for i, (key, found) in enumerate(zip(keys, ranges, strict=True))
    ]
    return CountingPlan(numbered, _words(numbered), measure.informed(count, facts), count)


def cells(
    rows: TableRows, keys: Sequence[Key], measure: Measure, max_labels: int, account: Account
) -> tuple[CountedCells, Measure]:
    """Aggregate the rows; the account learns what is left out. The measure comes back with what is
    known of its values.
    """
    plan = planned(rows, keys, measure, max_labels)
    columns = (_sorted if _sorts(rows, plan) else _grouped)(rows, plan)
    columns, tally = kept_cells(columns, plan)
    modes, orders, used, tally = surveyed([(columns, tally)], rows, plan, account)
    indices = placed(columns, orders)
    found = CountedCells(modes, used, indices, measure.finished(columns), tally)
    return found, plan.measure


def _words(numbered: Sequence[Slots]) -> list[list[int]]:
    """Choose which keys share an integer of 64 bits; those with most rows first, as tensors are
    sorted.
    """
    words: list[list[int]] = [[]]
    for i in sorted(range(len(numbered)), key=lambda i: -numbered[i].size):
        if sum(numbered[j].bits for j in [*words[-1], i]) > WORD:
            words.append([])
        words[-1].append(i)
    return words


def _sorts(rows: TableRows, plan: CountingPlan) -> bool:
    """Whether sorting the rows is quicker than a hash table, and possible."""
    numbered, measure, n = plan.numbered, plan.measure, plan.count
    if (
        len(plan.words) > 1
        or not measure.sorts
        or math.prod(slot.size for slot in numbered) <= MANY
    ):
        return False
    bits = sum(slot.bits for slot in numbered)
    size = plan.width // 8
    if measure.column is not None:
        bits += n.bit_length()
        # A sorted row takes its value and its number.
        size += 16
    # The memory is needed twice, since the result of DuckDB becomes an array.
    return bits <= WORD and 2 * n * size <= SHARE_OF_LIMIT * memory_limit(rows.sql)


def _sorted(rows: TableRows, plan: CountingPlan) -> dict[str, np.ndarray]:
    """Return words, numbers of rows and values of all cells, by sorting all rows of the table."""
    measure = plan.measure
    found = fetched(rows.sql(_lines(rows, plan, measure.real())), plan.count)
    if measure.column is None:
        return sorting.counted(found["w0"])
    columns = sorting.summed(found["w0"], found["v"], measure.largest, measure.complete)
    return {**columns, "value": measure.of_sums(columns)}


def grouping(rows: TableRows, plan: CountingPlan) -> str:
    """The SQL of a group-by, which goes to disk where memory does not suffice."""
    measure = plan.measure
    names = ", ".join(f"w{n}" for n in range(len(plan.words)))
    return (
        f"SELECT {names}, {', '.join(measure.results())} FROM (SELECT "
        f"{', '.join([names, 'count(*) AS rows', *measure.aggregates()])} FROM "
        f"({_lines(rows, plan, measure.value())}) GROUP BY {names})"
    )


def _grouped(rows: TableRows, plan: CountingPlan) -> dict[str, np.ndarray]:
    """The same from a group-by."""
    columns = rows.sql(grouping(rows, plan)).fetchnumpy()
    # Sorting by the first word is quicker than by indices later.
    order = np.argsort(columns["w0"])
    return {name: np.asarray(columns.pop(name))[order] for name in list(columns)}


def _lines(rows: TableRows, plan: CountingPlan, value: str | None) -> str:
    """Return the SQL of the words and the value ``v`` of every row."""
    inner, codes = [], []
    whole = "INTEGER" if plan.width == 32 else "BIGINT"
    for i, slot in enumerate(plan.numbered):
        inner.append(f"{slot.key.expression if slot.join else slot.code} AS x{i}")
        code = slot.code if slot.join else f"x{i}"
        known = code if slot.complete else f"coalesce({code}, {slot.missing})"
        codes.append(f"CAST({known} AS {whole})")
    if value is not None:
        inner.append(f"{value} AS v")
    packed = []
    for n, members in enumerate(plan.words):
        sql = codes[members[0]]
        for i in members[1:]:
            sql = f"({sql}) * {1 << plan.numbered[i].bits} + {codes[i]}"
        packed.append(f"{sql} AS w{n}")
    if value is not None:
        packed.append("v")
    joins = "".join(slot.join for slot in plan.numbered)
    return f"SELECT {', '.join(packed)} FROM (SELECT {', '.join(inner)} FROM {rows.table}){joins}"


def _unpack(columns: dict[str, np.ndarray], plan: CountingPlan) -> None:
    """Put a column of indices for each key in place of words."""
    for n, members in enumerate(plan.words):
        word = columns.pop(f"w{n}")
        shift = 0
        for i in reversed(members):
            slot = plan.numbered[i]
            index = np.empty(word.size, np.min_scalar_type(slot.missing))
            for piece in sorting.pieces(word.size):
                index[piece] = (word[piece] >> shift) & ((1 << slot.bits) - 1)
            columns[f"i{i}"] = index
            shift += slot.bits


@dataclass(frozen=True)
class Tally:
    """How many rows of a table were left out, by column and reason."""

    counts: dict[tuple[str, str], int]
    rows: int
    lost: int = 0
    """Number of rows that have no place in the tensor, though nobody wanted them out."""
    valueless: int = 0
    """Number of rows that have a place, and no value."""
    most: int = 0
    """Number of rows of the fullest cell."""

    def __add__(self, other: Tally) -> Tally:
        keys = [*self.counts, *(key for key in other.counts if key not in self.counts)]
        counts = {key: self.counts.get(key, 0) + other.counts.get(key, 0) for key in keys}
        return Tally(
            counts,
            self.rows + other.rows,
            self.lost + other.lost,
            self.valueless + other.valueless,
            max(self.most, other.most),
        )

    def report(self, account: Account) -> None:
        for (name, fault), count in self.counts.items():
            account.missing(name, fault, count, self.rows)


def kept_cells(
    columns: dict[str, np.ndarray], plan: CountingPlan
) -> tuple[dict[str, np.ndarray], Tally]:
    """Return the cells that are kept, with an index for each key, and tell of the rows of the
    others.
    """
    _unpack(columns, plan)
    rows, measure = columns["rows"], plan.measure
    kept = np.ones(rows.size, bool)
    on_purpose = np.zeros(rows.size, bool)
    counts: dict[tuple[str, str], int] = {}
    for i, slot in enumerate(plan.numbered):
        key = slot.key
        missing = columns[f"i{i}"] == slot.missing
        kept &= ~missing
        counts.setdefault((key.column.name, key.fault), int(rows[missing].sum()))
        if slot.dropped is not None:
            dropped = columns[f"i{i}"] == slot.dropped
            on_purpose |= dropped
            fault = f"is not among the {slot.dropped:,} most frequent"
            counts[key.name, fault] = int(rows[dropped].sum())
    lost, valueless = int(rows[~kept & ~on_purpose].sum()), 0
    kept &= ~on_purpose
    if measure.column is not None and "used" in columns:
        used = columns["used"]
        counts[measure.column.name, measure.fault] = int((rows - used).sum())
        valueless = int((rows - used)[kept].sum())
        kept &= used > 0
    if not kept.all():
        columns = {name: column[kept] for name, column in columns.items()}
    most = int(columns["rows"].max()) if columns["rows"].size else 0
    return columns, Tally(counts, int(rows.sum()), lost, valueless, most)


Orders = tuple[np.ndarray | None, ...]
"""For each mode the row of each number of its key, unless they are the same."""


def surveyed(
    pieces: Iterable[tuple[dict[str, np.ndarray], Tally]],
    rows: TableRows,
    plan: CountingPlan,
    account: Account,
) -> tuple[tuple[Mode, ...], Orders, tuple[int, ...], Tally]:
    """Return the modes that cells make, the order of their rows, how many of the rows of each mode
    have a cell, and how many rows are left out; the account learns why.
    """
    occurs = [np.zeros(slot.size, bool) for slot in plan.numbered]
    in_others = [0] * len(occurs)
    tally = Tally({}, 0)
    for columns, left_out in pieces:
        tally += left_out
        for i, slot in enumerate(plan.numbered):
            index = columns[f"i{i}"]
            occurs[i][index] = True
            if slot.gathers:
                in_others[i] += int(columns["rows"][index == slot.size - 1].sum())
    tally.report(account)
    if not occurs[0].any():
        raise InvalidDataError(f"No row of {rows.name} can be used. {' '.join(account.losses)}")
    found = [
        _finished_mode(slot, seen, others, account)
        for slot, seen, others in zip(plan.numbered, occurs, in_others, strict=True)
    ]
    modes, orders = zip(*found, strict=True)
    return modes, orders, tuple(int(np.count_nonzero(seen)) for seen in occurs), tally


def placed(columns: dict[str, np.ndarray], orders: Orders) -> tuple[np.ndarray, ...]:
    """Return the rows of cells in every mode, which are taken out of the columns."""
    numbers = (columns.pop(f"i{i}") for i in range(len(orders)))
    return tuple(
        index if order is None else order[index]
        for index, order in zip(numbers, orders, strict=True)
    )


def _finished_mode(
    slot: Slots, occurs: np.ndarray, in_others: int, account: Account
) -> tuple[Mode, np.ndarray | None]:
    """Return the mode with rows for what occurs, and the row of each number if that differs from
    the number.
    """
    mode, order = slot.finish(occurs)
    if in_others:
        account.decide(
            f"{in_others:,} rows are gathered in {mode.text()[-1]!r}: their "
            f"{slot.key.name!r} is not among the {slot.size - 1:,} most frequent."
        )
    if len(mode) == 1:
        raise InvalidDataError(
            f"Mode {mode.name!r} has one label only, {mode.text()[0]!r}, in the rows used, so it "
            "says nothing; leave it out of modes, or choose a finer bin."
        )
    return mode, None if order is None else order.astype(np.min_scalar_type(len(mode) - 1))
