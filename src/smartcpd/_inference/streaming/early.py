"""The first slices of a mode that grows, which are kept while they are few.

A model of a handful of slices is often a poor one, and what is remembered of them around it holds
later fits there. So slices are kept as they came until they are enough to tell components apart,
and fitted anew whenever they have doubled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._data.storage.conversion import joined

ENOUGH = 16
"""Number of nonzero cells for each parameter of a model from which on slices are enough."""


@dataclass(frozen=True)
class EarlySlices:
    """Slices as they came, and how many entries they had when they were last fitted together."""

    mode: int
    pieces: tuple[Dense | SparseTensor, ...]
    n_fitted: int

    @classmethod
    def of(cls, storage: Dense | SparseTensor, mode: int, rank: int) -> EarlySlices | None:
        """Keep slices that were fitted together; None where there is no need to."""
        early = cls(mode, (storage,), _n_entries(storage))
        return None if early.are_enough(rank) else replace(early, pieces=(_copied(storage),))

    def plus(self, storage: Dense | SparseTensor) -> EarlySlices:
        """Return these slices and new ones."""
        return replace(self, pieces=(*self.pieces, _copied(storage)))

    @property
    def n_entries(self) -> int:
        return sum(_n_entries(piece) for piece in self.pieces)

    def are_enough(self, rank: int) -> bool:
        shape = list(self.pieces[0].shape)
        shape[self.mode] = sum(piece.shape[self.mode] for piece in self.pieces)
        return self.n_entries >= ENOUGH * rank * sum(shape)

    def are_due(self, rank: int) -> bool:
        """Whether it is time to fit them anew."""
        return self.n_entries >= 2 * self.n_fitted or self.are_enough(rank)

    def joined(self) -> EarlySlices:
        """Return the same slices as one piece, taken for fitted."""
        return replace(self, pieces=(joined(self.pieces, self.mode),), n_fitted=self.n_entries)

    @property
    def tensor(self) -> Dense | SparseTensor:
        """All slices, after they were joined."""
        (piece,) = self.pieces
        return piece


@singledispatch
def _copied(piece: Dense | SparseTensor) -> Dense | SparseTensor:
    """Copy a piece, since the user may write into an array again; a sparse tensor is made of
    copies.
    """
    return piece


@_copied.register
def _(piece: Dense) -> Dense:
    weights = None if piece.weights is None else piece.weights.copy()
    return Dense(np.array(piece.array), weights)


@singledispatch
def _n_entries(piece: Dense | SparseTensor) -> int:
    """Count the entries that say something; where events are rare, cells without any say little."""
    return sum(int(np.count_nonzero(values)) for values in piece.observed_values())


@_n_entries.register
def _(piece: SparseTensor) -> int:
    return piece.nnz
