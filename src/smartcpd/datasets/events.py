"""Sparse simulated data: events that each choose a component, then a place in every mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smartcpd._common.parameters import check_integer, check_number
from smartcpd._data.storage import SparseTensor
from smartcpd.datasets.planted import Seed, checked


class PlantedEvents(NamedTuple):
    """Sparse counts, and the factors of their expected values.

    Attributes
    ----------
    data : SparseTensor
        The counts.
    factors : list of ndarray
        The factors, one a mode; the model that they make is the expected data.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> planted = datasets.events((10, 8, 6), rank=2, n_events=100, random_state=0)
    >>> [A.shape for A in planted.factors]
    [(10, 2), (8, 2), (6, 2)]
    """

    data: SparseTensor
    factors: list[np.ndarray]


def events(
    shape: Sequence[int] = (1000, 500, 300),
    rank: int = 20,
    n_events: int = 1_000_000,
    *,
    concentration: float = 0.3,
    random_state: Seed = None,
) -> PlantedEvents:
    """Simulate counts of events, most cells empty.

    Every event draws one of the components, all equally likely, then its index in each mode from
    that component's column.

    Parameters
    ----------
    shape : sequence of int
        Two modes or more.
    rank : int
        Number of components.
    n_events : int
        Events in all; those that fall into the same cell are added up.
    concentration : float
        Columns are Gamma(concentration) distributed and normalised; the smaller, the more they
        differ from row to row.
    random_state : int, Generator or None
        A seed, or a generator to draw from.

    Returns
    -------
    PlantedEvents

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X, factors = datasets.events((10, 8, 6), rank=2, n_events=100, random_state=0)
    >>> X
    SparseTensor(10x8x6, 56 nonzeros, 11.7 %, uint8)
    """
    shape, rank, rng = checked(shape, rank, random_state)
    check_integer("n_events", n_events, at_least=1)
    check_number("concentration", concentration, at_least=1e-3)
    columns = [rng.gamma(concentration, size=(size, rank)) for size in shape]
    columns = [A / A.sum(axis=0) for A in columns]
    sizes = rng.multinomial(n_events, np.full(rank, 1 / rank))
    indices = tuple(
        np.concatenate([_draw(A[:, r], n, rng) for r, n in enumerate(sizes)]) for A in columns
    )
    counts = SparseTensor(indices, np.ones(n_events, np.uint8), shape)
    expected = [columns[0] * (n_events / rank), *columns[1:]]
    return PlantedEvents(counts, expected)


def _draw(probabilities: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw indices by inverting the distribution function."""
    up_to = np.cumsum(probabilities)
    drawn = np.searchsorted(up_to, rng.random(count) * up_to[-1], side="right")
    return np.minimum(drawn, probabilities.size - 1)
