"""The group-by, and its groups as indices and values.

The table is read once. Labels become row numbers afterwards, on the groups, of which there are
fewer; rows that lack something form groups of their own, so that they are counted on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd.errors import InvalidDataError
from smartcpd.labels import Kind, Mode
from smartcpd.tables.account import Account
from smartcpd.tables.keys import Key, Leading, Named, Numbered
from smartcpd.tables.labelling import arranged
from smartcpd.tables.measure import Measure
from smartcpd.tables.sources import Source
from smartcpd.tables.sql import CELLS, SOURCE, one_row

LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Rows:
    """A mode, and how groups find their rows in it."""

    mode: Mode
    index: str
    """SQL of a number for each group."""
    order: np.ndarray | None = None
    """The row of each number, if they are not the same."""
    join: str = ""


class Grouping:
    """A table aggregated to the groups of some keys."""

    def __init__(
        self, source: Source, keys: Sequence[Key], measure: Measure, facts: Sequence[Any]
    ) -> None:
        self.source, self.keys, self.measure, self.facts = source, keys, measure, facts

    def run(self, where: str) -> None:
        """The pass over the whole table."""
        inner = [f"{key.expression} AS x{i}" for i, key in enumerate(self.keys)]
        if self.measure.column is not None:
            inner.append(f"{self.measure.value()} AS v")
        outer, joins = [], ""
        for i, key in enumerate(self.keys):
            if isinstance(key, Leading):
                joins += f" LEFT JOIN {self._leaders(i, key, where)} AS t{i} ON x{i} = t{i}.label"
                outer.append(f"CASE WHEN x{i} IS NOT NULL THEN coalesce(t{i}.id, -1) END AS k{i}")
            else:
                outer.append(f"x{i} AS k{i}")
        outer += ["count(*) AS rows", *self.measure.aggregates(self.facts)]
        groups = ", ".join(str(i + 1) for i in range(len(self.keys)))
        self.source.sql(
            f"CREATE TEMP TABLE {CELLS} AS SELECT {', '.join(outer)} "
            f"FROM (SELECT {', '.join(inner)} FROM {SOURCE}{where}){joins} GROUP BY {groups}"
        )

    def drop(self) -> None:
        """Forget the groups."""
        for name in (CELLS, *(f"{CELLS}_leaders_{i}" for i, _ in self._leading())):
            self.source.sql(f"DROP TABLE IF EXISTS {name}")

    def _leaders(self, i: int, key: Leading, where: str) -> str:
        """A table of the most frequent labels."""
        name = f"{CELLS}_leaders_{i}"
        self.source.sql(
            f"CREATE TEMP TABLE {name} AS SELECT label, CAST(row_number() OVER (ORDER BY events "
            f"DESC, label) - 1 AS INTEGER) AS id FROM (SELECT {key.expression} AS label, count(*) "
            f"AS events FROM {SOURCE}{where} GROUP BY 1) WHERE label IS NOT NULL "
            f"ORDER BY events DESC, label LIMIT {key.count}"
        )
        return name

    def usable(self) -> str:
        """The condition on groups that go into the tensor."""
        conditions = []
        for i, key in enumerate(self.keys):
            dropping = isinstance(key, Leading) and not key.gather
            conditions.append(f"k{i} >= 0" if dropping else f"k{i} IS NOT NULL")
        if self.measure.column is not None:
            conditions.append("used > 0")
        return " AND ".join(conditions)

    def account(self, account: Account) -> tuple[int, int]:
        """Count what was left out; how many rows there were, and how many are used."""
        used = "rows" if self.measure.column is None else "used"
        sums = ["sum(rows)", f"sum({used}) FILTER (WHERE {self.usable()})"]
        sums += [f"sum(rows) FILTER (WHERE k{i} IS NULL)" for i in range(len(self.keys))]
        sums += [f"sum(rows) FILTER (WHERE k{i} = -1)" for i, _ in self._leading()]
        sums.append("sum(rows)" if self.measure.column is None else "sum(rows - used)")
        found = one_row(self.source.sql(f"SELECT {', '.join(sums)} FROM {CELLS}"))
        rows, kept, *counts = (int(n or 0) for n in found)
        faults = {(key.column.name, key.fault): counts[i] for i, key in enumerate(self.keys)}
        for (column, fault), count in faults.items():
            account.missing(column, fault, count, rows)
        for (_, key), count in zip(self._leading(), counts[len(self.keys) :], strict=False):
            if count and key.gather:
                account.decide(f"{count:,} rows of {key.name!r} are gathered in one label.")
            elif count:
                account.missing(
                    key.name, f"is not among the {key.count:,} most frequent", count, rows
                )
        if self.measure.column is not None:
            account.missing(self.measure.column.name, self.measure.fault, counts[-1], rows)
        return rows, kept

    def _leading(self) -> list[tuple[int, Leading]]:
        return [(i, key) for i, key in enumerate(self.keys) if isinstance(key, Leading)]

    def cells(self, max_labels: int) -> tuple[list[Mode], list[np.ndarray], np.ndarray]:
        """The modes, the indices of every cell in each, and the values of the cells."""
        rows = [self._rows(i, key, max_labels) for i, key in enumerate(self.keys)]
        columns = [f"CAST({r.index} AS {_unsigned(r)}) AS i{i}" for i, r in enumerate(rows)]
        columns.append(f"{self.measure.result(self.facts, self._fits())} AS value")
        joins = "".join(r.join for r in rows)
        found = self.source.sql(
            f"SELECT {', '.join(columns)} FROM {CELLS}{joins} WHERE {self.usable()}"
        ).fetchnumpy()
        indices = []
        for i, r in enumerate(rows):
            index = found.pop(f"i{i}")
            if r.order is not None:
                index = r.order.astype(np.min_scalar_type(len(r.mode) - 1))[index]
            indices.append(index)
        return [r.mode for r in rows], indices, found["value"]

    def _fits(self) -> bool:
        if not self.measure.may_outgrow:
            return True
        query = f"SELECT max(abs(CAST(total AS DOUBLE))) FROM {CELLS}"
        return (one_row(self.source.sql(query))[0] or 0) < LARGEST

    def _rows(self, i: int, key: Key, max_labels: int) -> Rows:
        if isinstance(key, Numbered):
            rows = self._numbered(i, key, max_labels)
        elif isinstance(key, Leading):
            rows = self._led(i, key)
        else:
            assert isinstance(key, Named)
            rows = self._named(i, key, max_labels)
        if len(rows.mode) == 1:
            raise InvalidDataError(
                f"Mode {key.name!r} has one label only, {rows.mode.text()[0]!r}, in the rows used, "
                "so it says nothing; leave it out of modes, or choose a finer bin."
            )
        return rows

    def _numbered(self, i: int, key: Numbered, max_labels: int) -> Rows:
        first, last = 0, (key.size or 0) - 1
        if key.size is None:
            query = f"SELECT min(k{i}), max(k{i}) FROM {CELLS} WHERE {self.usable()}"
            first, last = one_row(self.source.sql(query))
        size = last - first + 1
        if size > max_labels:
            ends = " to ".join(str(key.labels(n, n)[0])[:16] for n in (first, last))
            raise InvalidDataError(
                f"Mode {key.name!r} would have {size:,} rows, from {ends}, more than "
                f"max_labels={max_labels:,}; use a longer bin, or leave out impossible dates with "
                "where=."
            )
        mode = Mode(key.name, key.labels(first, last), key.kind)
        return Rows(mode, f"k{i} - {first}" if first >= 0 else f"k{i} + {-first}")

    def _named(self, i: int, key: Named, max_labels: int) -> Rows:
        table = f"{CELLS}_labels_{i}"
        self.source.sql(
            f"CREATE TEMP TABLE {table} AS SELECT label, row_number() OVER (ORDER BY label) - 1 "
            f"AS id FROM (SELECT DISTINCT k{i} AS label FROM {CELLS} WHERE {self.usable()})"
        )
        (count,) = one_row(self.source.sql(f"SELECT count(*) FROM {table}"))
        if count > max_labels:
            raise InvalidDataError(
                f"Mode {key.name!r} would have {count:,} labels, more than "
                f"max_labels={max_labels:,}; keep the most frequent with "
                f"top={{{key.name!r}: 1000}}, or cut it into bins."
            )
        mode, order = arranged(key.name, self._labels(table))
        same = np.array_equal(order, np.arange(len(order)))
        join = f" JOIN {table} AS t{i} ON k{i} = t{i}.label"
        return Rows(mode, f"t{i}.id", None if same else order, join)

    def _labels(self, table: str) -> np.ndarray:
        return self.source.sql(f"SELECT label FROM {table} ORDER BY id").fetchnumpy()["label"]

    def _led(self, i: int, key: Leading) -> Rows:
        labels = self._labels(f"{CELLS}_leaders_{i}")
        mode, order = arranged(key.name, labels)
        query = f"SELECT count(*) FROM {CELLS} WHERE k{i} = -1 AND {self.usable()}"
        (others,) = one_row(self.source.sql(query))
        if others:
            texts = mode.text()
            mode = Mode(key.name, [*texts, _other(texts)], Kind.CATEGORY)
            order = np.append(order, len(texts))
        return Rows(mode, f"CASE WHEN k{i} = -1 THEN {len(labels)} ELSE k{i} END", order)


def _other(labels: Sequence[str]) -> str:
    """A name that no label has."""
    name = "(other)"
    while name in labels:
        name = f"({name})"
    return name


def _unsigned(rows: Rows) -> str:
    largest = len(rows.mode) if rows.order is None else max(len(rows.mode), rows.order.size)
    return "UTINYINT" if largest <= 2**8 else "USMALLINT" if largest <= 2**16 else "UINTEGER"
