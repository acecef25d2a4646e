"""The group-by, and its groups as indices and values.

Rows that lack something get numbers of their own, so that one pass counts them on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd.errors import InvalidDataError
from smartcpd.labels import Mode
from smartcpd.tables import sorting
from smartcpd.tables.account import Account
from smartcpd.tables.fetching import fetched
from smartcpd.tables.keys import Key
from smartcpd.tables.measure import Measure
from smartcpd.tables.slots import Slots, ranges_wanted, slots
from smartcpd.tables.sources import Rows
from smartcpd.tables.sql import memory_limit, one_row

WORD = 62
"""Bits that are filled of a signed integer of 64."""
SHORT_WORD = 31
"""Bits that a signed integer of 32 has."""
MANY = 1 << 20
"""Possible cells up to here are left to a hash table, which stays in the processor's cache."""
SHARE_OF_LIMIT = 1 / 2
"""Of the memory that may be used: rows that are sorted must fit."""


@dataclass(frozen=True)
class Cells:
    """What a tensor is made of."""

    modes: tuple[Mode, ...]
    indices: tuple[np.ndarray, ...]
    values: np.ndarray
    absent: str


def cells(
    rows: Rows, keys: Sequence[Key], measure: Measure, max_labels: int, account: Account
) -> Cells:
    """Aggregate the rows; the account learns what is left out."""
    wanted = [ranges_wanted(key) for key in keys]
    queries = [sql for part in wanted for sql in part] + list(measure.facts())
    found = one_row(rows.sql(f"SELECT {', '.join(['count(*)', *queries])} FROM {rows.table}"))
    count, facts = found[0], list(found[1:])
    numbered = []
    for i, (key, part) in enumerate(zip(keys, wanted, strict=True)):
        numbered.append(slots(i, key, facts[: len(part)], rows, count, max_labels))
        facts = facts[len(part) :]
    words = _words(numbered)
    informed = measure.informed(count, facts)
    if _sorts(rows, numbered, words, informed, count):
        columns = _sorted(rows, numbered, words, informed, count)
    else:
        columns = _grouped(rows, numbered, words, informed)
    columns = _unpacked(columns, numbered, words)
    kept = _tally(columns, numbered, measure, account)
    if not kept.all():
        columns = {name: column[kept] for name, column in columns.items()}
    if not columns["rows"].size:
        raise InvalidDataError(f"No row of {rows.name} can be used. {' '.join(account.losses)}")
    modes, indices = [], []
    for i, slot in enumerate(numbered):
        mode, index = _finished(slot, columns.pop(f"i{i}"), columns["rows"], account)
        modes.append(mode)
        indices.append(index)
    return Cells(tuple(modes), tuple(indices), measure.finished(columns), measure.absent)


def _words(numbered: Sequence[Slots]) -> list[list[int]]:
    """Which keys share an integer of 64 bits; those with most rows first, as tensors are sorted."""
    words: list[list[int]] = [[]]
    for i in sorted(range(len(numbered)), key=lambda i: -numbered[i].size):
        if sum(numbered[j].bits for j in [*words[-1], i]) > WORD:
            words.append([])
        words[-1].append(i)
    return words


def _sorts(
    rows: Rows, numbered: Sequence[Slots], words: Sequence[Sequence[int]], measure: Measure, n: int
) -> bool:
    """Whether sorting the rows is quicker than a hash table, and possible."""
    if len(words) > 1 or not measure.sorts or math.prod(slot.size for slot in numbered) <= MANY:
        return False
    bits = sum(slot.bits for slot in numbered)
    size = _width(numbered) // 8
    if measure.column is not None:
        bits += n.bit_length()
        # A value, and the row it is in.
        size += 16
    # Twice, since the result of DuckDB becomes an array.
    return bits <= WORD and 2 * n * size <= SHARE_OF_LIMIT * memory_limit(rows.sql)


def _sorted(
    rows: Rows, numbered: Sequence[Slots], words: Sequence[Sequence[int]], measure: Measure, n: int
) -> dict[str, np.ndarray]:
    """Words, numbers of rows and values of all cells, from every row of the table."""
    found = fetched(rows.sql(_lines(rows, numbered, words, measure.real())), n)
    if measure.column is None:
        return sorting.counted(found["w0"])
    columns = sorting.summed(found["w0"], found["v"], measure.largest, measure.complete)
    return {**columns, "value": measure.of_sums(columns)}


def _grouped(
    rows: Rows, numbered: Sequence[Slots], words: Sequence[Sequence[int]], measure: Measure
) -> dict[str, np.ndarray]:
    """The same from a group-by, which goes to disk where memory does not suffice."""
    names = ", ".join(f"w{n}" for n in range(len(words)))
    columns = rows.sql(
        f"SELECT {names}, {', '.join(measure.results())} FROM (SELECT "
        f"{', '.join([names, 'count(*) AS rows', *measure.aggregates()])} FROM "
        f"({_lines(rows, numbered, words, measure.value())}) GROUP BY {names})"
    ).fetchnumpy()
    # Sorting by the first word is quicker than by indices later.
    order = np.argsort(columns["w0"])
    return {name: np.asarray(columns.pop(name))[order] for name in list(columns)}


def _width(numbered: Sequence[Slots]) -> int:
    """Bits of the integers that words are made of: half as many bytes take less time."""
    return 32 if sum(slot.bits for slot in numbered) < SHORT_WORD else 64


def _lines(
    rows: Rows, numbered: Sequence[Slots], words: Sequence[Sequence[int]], value: str | None
) -> str:
    """Words and the value ``v`` of every row."""
    inner, codes = [], []
    whole = "INTEGER" if _width(numbered) == 32 else "BIGINT"
    for i, slot in enumerate(numbered):
        inner.append(f"{slot.key.expression if slot.join else slot.code} AS x{i}")
        code = slot.code if slot.join else f"x{i}"
        known = code if slot.complete else f"coalesce({code}, {slot.missing})"
        codes.append(f"CAST({known} AS {whole})")
    if value is not None:
        inner.append(f"{value} AS v")
    packed = []
    for n, members in enumerate(words):
        sql = codes[members[0]]
        for i in members[1:]:
            sql = f"({sql}) * {1 << numbered[i].bits} + {codes[i]}"
        packed.append(f"{sql} AS w{n}")
    if value is not None:
        packed.append("v")
    joins = "".join(slot.join for slot in numbered)
    return f"SELECT {', '.join(packed)} FROM (SELECT {', '.join(inner)} FROM {rows.table}){joins}"


def _unpacked(
    columns: dict[str, np.ndarray], numbered: Sequence[Slots], words: Sequence[Sequence[int]]
) -> dict[str, np.ndarray]:
    """With one column of indices a key instead of words."""
    for n, members in enumerate(words):
        word = columns.pop(f"w{n}")
        shift = 0
        for i in reversed(members):
            slot = numbered[i]
            index = np.empty(word.size, np.min_scalar_type(slot.missing))
            for piece in sorting.pieces(word.size):
                index[piece] = (word[piece] >> shift) & ((1 << slot.bits) - 1)
            columns[f"i{i}"] = index
            shift += slot.bits
    return columns


def _tally(
    columns: dict[str, np.ndarray], numbered: Sequence[Slots], measure: Measure, account: Account
) -> np.ndarray:
    """Account for rows left out; which cells are kept."""
    rows = columns["rows"]
    total = int(rows.sum())
    kept = np.ones(rows.size, bool)
    told = set()
    for i, slot in enumerate(numbered):
        key = slot.key
        missing = columns[f"i{i}"] == slot.missing
        kept &= ~missing
        if (key.column.name, key.fault) not in told:
            account.missing(key.column.name, key.fault, int(rows[missing].sum()), total)
            told.add((key.column.name, key.fault))
        if slot.dropped is not None:
            dropped = columns[f"i{i}"] == slot.dropped
            kept &= ~dropped
            fault = f"is not among the {slot.dropped:,} most frequent"
            account.missing(key.name, fault, int(rows[dropped].sum()), total)
    if measure.column is not None and "used" in columns:
        used = columns["used"]
        account.missing(measure.column.name, measure.fault, int((rows - used).sum()), total)
        kept &= used > 0
    return kept


def _finished(
    slot: Slots, index: np.ndarray, rows: np.ndarray, account: Account
) -> tuple[Mode, np.ndarray]:
    """The mode with rows for what occurs, and the index of every cell in it."""
    occurs = np.zeros(slot.size, bool)
    occurs[index] = True
    mode, order = slot.finish(occurs)
    others = slot.size - 1
    if slot.gathers and occurs[others]:
        account.decide(
            f"{int(rows[index == others].sum()):,} rows are gathered in {mode.text()[-1]!r}: their "
            f"{slot.key.name!r} is not among the {others:,} most frequent."
        )
    if len(mode) == 1:
        raise InvalidDataError(
            f"Mode {mode.name!r} has one label only, {mode.text()[0]!r}, in the rows used, so it "
            "says nothing; leave it out of modes, or choose a finer bin."
        )
    if order is not None:
        index = order.astype(np.min_scalar_type(len(mode) - 1))[index]
    return mode, index
