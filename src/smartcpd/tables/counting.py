"""The group-by, and its groups as indices and values.

Rows that lack something get numbers of their own, so that one pass counts them on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd.errors import InvalidDataError
from smartcpd.labels import Mode
from smartcpd.tables.account import Account
from smartcpd.tables.keys import Key
from smartcpd.tables.measure import Measure
from smartcpd.tables.slots import Slots, ranges_wanted, slots
from smartcpd.tables.sources import Rows
from smartcpd.tables.sql import one_row

WORD = 62
"""Bits that are filled of a signed integer of 64."""
SHORT_WORD = 31
"""Bits that a signed integer of 32 has."""


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
    query = _query(rows, numbered, words, measure.informed(count, facts))
    tail = _tail(numbered, words, measure, count)
    if tail:
        query = f"SELECT CAST(w0 AS BIGINT) * {1 << tail} + rows AS w0 FROM ({query})"
    columns = _in_order(rows.sql(query).fetchnumpy(), tail)
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


def _query(
    rows: Rows, numbered: Sequence[Slots], words: Sequence[Sequence[int]], measure: Measure
) -> str:
    """One pass over the table."""
    inner, codes = [], []
    # Half as many bytes take less time to group by.
    whole = "INTEGER" if sum(slot.bits for slot in numbered) < SHORT_WORD else "BIGINT"
    for i, slot in enumerate(numbered):
        inner.append(f"{slot.key.expression if slot.join else slot.code} AS x{i}")
        code = slot.code if slot.join else f"x{i}"
        known = code if slot.complete else f"coalesce({code}, {slot.missing})"
        codes.append(f"CAST({known} AS {whole})")
    value = measure.value()
    if value is not None:
        inner.append(f"{value} AS v")
    packed = []
    for n, members in enumerate(words):
        sql = codes[members[0]]
        for i in members[1:]:
            sql = f"({sql}) * {1 << numbered[i].bits} + {codes[i]}"
        packed.append(f"{sql} AS w{n}")
    names = ", ".join(f"w{n}" for n in range(len(words)))
    joins = "".join(slot.join for slot in numbered)
    return (
        f"SELECT {names}, {', '.join(measure.results())} FROM (SELECT "
        f"{', '.join([*packed, 'count(*) AS rows', *measure.aggregates()])} FROM "
        f"(SELECT {', '.join(inner)} FROM {rows.table}){joins} GROUP BY {names})"
    )


def _tail(
    numbered: Sequence[Slots], words: Sequence[Sequence[int]], measure: Measure, count: int
) -> int:
    """Bits for the number of rows at the end of a word, where nothing else is asked and they fit.

    Then one array holds all, and sorting it takes a third of the time of finding an order.
    """
    bits = count.bit_length()
    fits = len(words) == 1 and sum(slot.bits for slot in numbered) + bits <= WORD
    return bits if fits and measure.column is None else 0


def _in_order(columns: dict[str, np.ndarray], tail: int) -> dict[str, np.ndarray]:
    """Sorted by the first word, which is quicker than sorting by indices later."""
    if tail:
        word = np.asarray(columns["w0"])
        word.sort()
        return {"rows": word & ((1 << tail) - 1), "w0": word >> tail}
    order = np.argsort(columns["w0"])
    return {name: np.asarray(columns.pop(name))[order] for name in list(columns)}


def _unpacked(
    columns: dict[str, np.ndarray], numbered: Sequence[Slots], words: Sequence[Sequence[int]]
) -> dict[str, np.ndarray]:
    """With one column of indices a key instead of words."""
    for n, members in enumerate(words):
        word = columns.pop(f"w{n}")
        shift = 0
        for i in reversed(members):
            slot = numbered[i]
            index = (word >> shift) & ((1 << slot.bits) - 1)
            columns[f"i{i}"] = index.astype(np.min_scalar_type(slot.missing))
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
