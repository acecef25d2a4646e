"""A key is SQL that says to which row of a mode an event belongs, with the names of those rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smartcpd._data.labels import Kind
from smartcpd._data.tables.columns import Column

Labels = Callable[[int, int], Any]
"""Returns the labels of rows, from a first number to a last one."""
TABLE = "{table}"
"""The placeholder, in the SQL of a fact, for the rows that are used."""


@dataclass(frozen=True)
class Key:
    """A key maps rows of the table to rows of a mode.

    Parameters
    ----------
    name : str
        The name of the mode.
    column : Column
        The column that it reads.
    expression : str
        SQL of the row of the mode; NULL for rows of the table that are left out.
    fault : str
        What is wrong with the rows that are left out.
    notes : list of str
        What was decided on behalf of the user.
    """

    name: str
    column: Column
    expression: str
    fault: str
    notes: list[str] = field(default_factory=list, kw_only=True)


@dataclass(frozen=True)
class Numbered(Key):
    """A key whose expression is a whole number; rows in between exist whether or not they occur."""

    labels: Labels
    kind: Kind
    size: int | None = None
    """Number of rows, if it is fixed; otherwise rows begin and end where events do."""
    gaps: bool = True
    """Whether rows between those that occur exist as well."""


@dataclass(frozen=True)
class Named(Key):
    """A key whose expression is a label; the rows are the labels that occur."""


@dataclass(frozen=True)
class Leading(Key):
    """A key whose expression is a label; the rows are the most frequent ones, and one for all
    others.
    """

    count: int
    gather: bool


@dataclass(frozen=True)
class Wish:
    """A mode that was asked for: a column, and the facts about it that a first query finds out."""

    name: str
    column: Column
    facts: tuple[str, ...]
    resolve: Callable[[tuple[Any, ...]], Key]
    """Makes the key, given the facts."""


def named(names: Sequence[Any]) -> Labels:
    """Return the labels of rows that all have a name."""
    return lambda first, last: names[first : last + 1]


def positions(labels: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where each label is among those wanted."""
    order = np.argsort(wanted, kind="stable")
    return order[np.searchsorted(wanted, labels, sorter=order)]
