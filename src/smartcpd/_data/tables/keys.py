"""A key is the SQL that says in which row of a mode an event belongs, and what rows are called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smartcpd._data.labels import Kind
from smartcpd._data.tables.columns import Column

Labels = Callable[[int, int], Any]
"""What rows are called, from a first number to a last one."""
TABLE = "{table}"
"""In a fact: the rows that are used."""


@dataclass(frozen=True)
class Key:
    """Rows of the table to rows of a mode.

    Parameters
    ----------
    name : str
        Of the mode.
    column : Column
    expression : str
        NULL for rows that are left out.
    fault : str
        What is wrong with those.
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
    """The expression is a whole number, and rows in between exist whether or not they occur."""

    labels: Labels
    kind: Kind
    size: int | None = None
    """If given, rows are numbered from 0 to here; otherwise they begin and end where events do."""


@dataclass(frozen=True)
class Named(Key):
    """The expression is a label; the rows are those that occur."""


@dataclass(frozen=True)
class Leading(Key):
    """The expression is a label; the rows are the most frequent ones, and one for all others."""

    count: int
    gather: bool


@dataclass(frozen=True)
class Wish:
    """A mode as asked for: a column, and facts about it that a first query finds out."""

    name: str
    column: Column
    facts: tuple[str, ...]
    resolve: Callable[[tuple[Any, ...]], Key]
    """From the facts to a key."""


def positions(labels: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each label is among those wanted."""
    order = np.argsort(wanted, kind="stable")
    return order[np.searchsorted(wanted, labels, sorter=order)]
