"""Neighbouring modes taken for one long mode, whose columns are products of theirs.

A tensor of order 16 with two rows a mode is a matrix of 256 rows and columns with the same cells,
and with the same components. A pass over its cells costs a small part of what one over thousands of
fibers of two cells each costs; the gradient of a product then leads back to those of its factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import parts


@dataclass(frozen=True)
class JoinedModes:
    """Two groups of neighbouring modes, each taken for one: the sizes of the modes of each."""

    groups: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, shape: Sequence[int]) -> JoinedModes:
        """Return the two groups that are most alike in their number of rows."""
        halves = [(tuple(shape[:cut]), tuple(shape[cut:])) for cut in range(1, len(shape))]
        return cls(min(halves, key=lambda half: max(math.prod(group) for group in half)))

    @property
    def shape(self) -> tuple[int, int]:
        first, second = (math.prod(group) for group in self.groups)
        return first, second

    def products(self, A: np.ndarray) -> Products:
        """Return the columns of the long modes, from stacked factors of the short ones."""
        first, second = self.groups
        n_rows = sum(first)
        return Products(_growing(A[:n_rows], first), _growing(A[n_rows:], second))


@dataclass(frozen=True)
class Products:
    """The columns of long modes, and how they came about."""

    first: list[tuple[np.ndarray, np.ndarray]]
    """For each mode of the group, the product of those before it, and its own factor."""
    second: list[tuple[np.ndarray, np.ndarray]]

    @property
    def stacked(self) -> np.ndarray:
        """The factors of the two long modes in one array."""
        return np.concatenate([_times(*grown[-1]) for grown in (self.first, self.second)])

    def pulled_back(self, G: np.ndarray) -> np.ndarray:
        """Return the gradient by the short modes' factors, from that by the long modes'."""
        n_rows = math.prod(len(factor) for _, factor in self.first)
        return np.concatenate([_back(self.first, G[:n_rows]), _back(self.second, G[n_rows:])])


def _growing(A: np.ndarray, sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    before = np.ones((1, A.shape[1]), A.dtype)
    grown = []
    for factor in parts(A, sizes):
        grown.append((before, factor))
        before = _times(before, factor)
    return grown


def _times(before: np.ndarray, factor: np.ndarray) -> np.ndarray:
    return (before[:, None] * factor).reshape(-1, factor.shape[1])


def _back(grown: list[tuple[np.ndarray, np.ndarray]], G: np.ndarray) -> np.ndarray:
    found = []
    for before, factor in reversed(grown):
        cells = G.reshape(len(before), *factor.shape)
        found.append(np.einsum("bkr,br->kr", cells, before))
        G = np.einsum("bkr,kr->br", cells, factor)
    return np.concatenate(found[::-1])
