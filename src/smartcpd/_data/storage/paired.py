"""Events as pairs: each cell is an outer part, indices of some modes, and an inner one, all others.

Events with the same outer part follow each other, so that a loop reads its rows once. Inner parts
are numbered through, whether there is an event or not: the products of their rows make a table
small enough to stay in the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from smartcpd._common.stacked import offsets

if TYPE_CHECKING:
    from smartcpd._data.storage.events import Events

LARGEST_TABLE = 1 << 13
"""Number of inner parts up to which their table stays in the cache."""
EVENTS_A_ROW = 8
"""A table is worth having if it has this number of events a row, or more."""
MOST_PAIRED = 1 << 24
"""Up to so many events are sorted into pairs, which takes as much memory again."""
MOST_INNER_MODES = 3
TRIED, LOOKED_AT = 12, 1 << 13
"""How many ways to split the modes are compared, on about so many events."""


@dataclass(frozen=True, eq=False)
class PairedEvents:
    """Events in the order of their outer parts."""

    outer: np.ndarray
    """(outer parts, modes) rows in the stacked factors, uint32."""
    inner: np.ndarray
    """(inner parts, modes) rows in the stacked factors, uint32."""
    starts: np.ndarray
    """Where the events of each outer part begin; one more than there are."""
    partners: np.ndarray
    """The inner part of each event, uint32."""
    values: np.ndarray
    """float64."""

    @classmethod
    def of(cls, events: Events) -> PairedEvents:
        """Sort events into pairs."""
        modes = inner_modes(events)
        others = _others(modes, len(events.shape))
        sizes = tuple(events.shape[n] for n in modes)
        first = offsets(events.shape)
        keys, partners = _numbered(events, others), _numbered(events, modes)
        order = np.argsort(keys * math.prod(sizes) + partners)
        keys = keys[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        here = order[starts]
        outer = [events.indices[n][here].astype(np.int64) + first[n] for n in others]
        inner = [
            index + first[n]
            for n, index in zip(
                modes, np.unravel_index(np.arange(math.prod(sizes)), sizes), strict=True
            )
        ]
        return cls(
            np.ascontiguousarray(np.stack(outer, axis=1).astype(np.uint32)),
            np.ascontiguousarray(np.stack(inner, axis=1).astype(np.uint32)),
            np.append(starts, len(events)).astype(np.int64),
            partners[order].astype(np.uint32),
            events.values[order].astype(np.float64),
        )

    @property
    def given(self) -> tuple[np.ndarray, ...]:
        """What compiled loops over pairs take first."""
        return self.outer, self.inner, self.starts, self.partners, self.values

    def bounds(self, n_groups: int) -> np.ndarray:
        """Where groups of outer parts with about as many events each begin and end."""
        wanted = np.linspace(0, len(self.values), n_groups + 1)
        return np.searchsorted(self.starts, wanted).astype(np.int64)


def inner_modes(events: Events) -> tuple[int, ...]:
    """The modes of the inner part: those with a table that is small enough, and the fewest outer
    parts; the shortest mode where there are none.
    """
    shape, order = events.shape, len(events.shape)
    most = min(LARGEST_TABLE, len(events) // EVENTS_A_ROW)
    counts = range(1, min(order - 1, MOST_INNER_MODES) + 1)
    candidates = [modes for count in counts for modes in combinations(range(order), count)]
    sizes = {modes: math.prod(shape[n] for n in modes) for modes in candidates}
    small = sorted((m for m in candidates if sizes[m] <= most), key=lambda m: -sizes[m])
    if not small:
        return (min(range(order), key=lambda n: shape[n]),)
    some = events.at(np.arange(0, len(events), max(1, len(events) // LOOKED_AT)))

    def n_outer(modes: tuple[int, ...]) -> int:
        return len(np.unique(_numbered(some, _others(modes, order))))

    return min(small[:TRIED], key=n_outer)


def _others(modes: Sequence[int], order: int) -> tuple[int, ...]:
    return tuple(n for n in range(order) if n not in modes)


def _numbered(events: Events, modes: Sequence[int]) -> np.ndarray:
    """The indices of some modes as one number an event."""
    columns = [events.indices[n].astype(np.int64) for n in modes]
    if math.prod(events.shape) < 2**63:
        return np.ravel_multi_index(columns, tuple(events.shape[n] for n in modes))
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
