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
from smartcpd.tables.account import Account
from smartcpd.tables.keys import Key
from smartcpd.tables.measure import Measure
from smartcpd.tables.slots import Slots, ranges_wanted, slots
from smartcpd.tables.sources import Rows
from smartcpd.tables.sql import one_row

WORD = 2**62
"""Numbers below fit into a signed integer of 64 bits."""


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
        numbered.append(slots(i, key, facts[: len(part)], rows, max_labels))
        facts = facts[len(part) :]
    columns = rows.sql(_query(rows, numbered, measure.scaled(count, facts))).fetchnumpy()
    columns = {name: np.asarray(column) for name, column in columns.items()}
    kept = _tally(columns, numbered, measure, account)
    if not kept.all():
        columns = {name: column[kept] for name, column in columns.items()}
    if not columns["value"].size:
        raise InvalidDataError(f"No row of {rows.name} can be used. {' '.join(account.losses)}")
    modes, indices = [], []
    for i, slot in enumerate(numbered):
        mode, index = _finished(slot, columns.pop(f"i{i}"), columns["rows"], account)
        modes.append(mode)
        indices.append(index)
    return Cells(tuple(modes), tuple(indices), columns["value"], measure.absent)


def _query(rows: Rows, numbered: Sequence[Slots], measure: Measure) -> str:
    """One pass over the table: groups in order, the mode with most rows first."""
    inner, outer, joins = [], [], "".join(slot.join for slot in numbered)
    for i, slot in enumerate(numbered):
        inner.append(f"{slot.key.expression if slot.join else slot.code} AS x{i}")
        code = slot.code if slot.join else f"x{i}"
        outer.append(f"CAST(coalesce({code}, {slot.missing}) AS BIGINT)")
    value = measure.value()
    if value is not None:
        inner.append(f"{value} AS v")
    packed, unpacked = _words(numbered, outer)
    names = [f"w{n}" for n in range(len(packed))]
    grouped = [f"{sql} AS {name}" for sql, name in zip(packed, names, strict=True)]
    grouped += ["count(*) AS rows", *measure.aggregates()]
    columns = [*unpacked, "rows", *measure.results()]
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT {', '.join(grouped)} FROM "
        f"(SELECT {', '.join(inner)} FROM {rows.table}){joins} GROUP BY {', '.join(names)}) "
        f"ORDER BY {', '.join(names)}"
    )


def _words(numbered: Sequence[Slots], codes: Sequence[str]) -> tuple[list[str], list[str]]:
    """SQL that packs numbers into as few words as possible, and SQL that unpacks them."""
    order = sorted(range(len(numbered)), key=lambda i: -numbered[i].size)
    words: list[list[int]] = [[]]
    for i in order:
        if math.prod(numbered[j].size + 1 for j in [*words[-1], i]) > WORD:
            words.append([])
        words[-1].append(i)
    packed, unpacked = [], [""] * len(numbered)
    for n, members in enumerate(words):
        sql, below = codes[members[0]], 1
        for i in members[1:]:
            sql = f"({sql}) * {numbered[i].size + 1} + {codes[i]}"
        for i in reversed(members):
            capacity = numbered[i].size + 1
            whole = f"w{n} // {below}" if below > 1 else f"w{n}"
            unpacked[i] = f"CAST({whole} % {capacity} AS {_unsigned(capacity)}) AS i{i}"
            below *= capacity
        packed.append(sql)
    return packed, unpacked


def _unsigned(capacity: int) -> str:
    return "UTINYINT" if capacity <= 2**8 else "USMALLINT" if capacity <= 2**16 else "UINTEGER"


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
    if measure.column is not None:
        used = columns.pop("used")
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
