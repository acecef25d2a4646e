"""The first slices of a mode that grows, which are kept while they are few.

A model of a handful of slices is often a poor one, and what is remembered of them around it holds
later fits there. So slices are kept as they came until they are enough to tell components apart,
and fitted anew whenever they have doubled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd._data.storage import Dense, SparseTensor, Storage

ENOUGH = 16
"""Number of nonzero cells for each parameter of a model from which on slices are enough."""


@dataclass(frozen=True)
class EarlySlices:
    """Slices as they came, and how many entries they had when they were last fitted together."""

    mode: int
    pieces: tuple[Dense | SparseTensor, ...]
    n_fitted: int

    @classmethod
    def of(cls, storage: Storage, mode: int, rank: int) -> EarlySlices | None:
        """Keep slices that were fitted together; None where there is no need to."""
        if not isinstance(storage, Dense | SparseTensor):
            return None
        early = cls(mode, (storage,), _entries(storage))
        return None if early.are_enough(rank) else replace(early, pieces=(_copied(storage),))

    def plus(self, storage: Storage) -> EarlySlices | None:
        """Return these slices and new ones."""
        if not isinstance(storage, Dense | SparseTensor):
            return None
        return replace(self, pieces=(*self.pieces, _copied(storage)))

    @property
    def n_entries(self) -> int:
        return sum(_entries(piece) for piece in self.pieces)

    def are_enough(self, rank: int) -> bool:
        shape = list(self.pieces[0].shape)
        shape[self.mode] = sum(piece.shape[self.mode] for piece in self.pieces)
        return self.n_entries >= ENOUGH * rank * sum(shape)

    def are_due(self, rank: int) -> bool:
        """Whether it is time to fit them anew."""
        return self.n_entries >= 2 * self.n_fitted or self.are_enough(rank)

    def joined(self) -> EarlySlices:
        """Return the same slices as one piece, taken for fitted."""
        sparse = all(isinstance(piece, SparseTensor) for piece in self.pieces)
        join = _joined_sparse if sparse else _joined_dense
        return replace(self, pieces=(join(self.pieces, self.mode),), n_fitted=self.n_entries)

    def data(self) -> tuple[Any, np.ndarray | None]:
        """The tensor that a fit takes, from slices that were joined, and the weights of its
        cells.
        """
        (piece,) = self.pieces
        if isinstance(piece, SparseTensor):
            return piece, None
        weights = piece.weights
        return piece.array, None if weights is None else weights.astype(np.float64)


def _copied(piece: Dense | SparseTensor) -> Dense | SparseTensor:
    """Copy a piece, since the user may write into an array again; a sparse tensor is made of
    copies.
    """
    if isinstance(piece, SparseTensor):
        return piece
    weights = None if piece.weights is None else piece.weights.copy()
    return Dense(np.array(piece.array), weights)


def _entries(piece: Dense | SparseTensor) -> int:
    """Count the entries that say something; where events are rare, cells without any say little."""
    if isinstance(piece, SparseTensor):
        return piece.nnz
    seen = piece.array != 0
    return int(np.count_nonzero(seen if piece.weights is None else seen & (piece.weights > 0)))


def _dense(piece: Dense | SparseTensor) -> Dense:
    if isinstance(piece, Dense):
        return piece
    array = np.zeros(piece.shape, piece.dtype)
    array[piece.indices] = piece.values
    weights = np.full(piece.shape, float(piece.absent == "zero"))
    weights[piece.indices] = 1.0 if piece.weights is None else piece.weights
    weights[piece.missing] = 0.0
    return Dense(array, weights)


def _joined_dense(pieces: tuple[Any, ...], mode: int) -> Dense:
    arrays = [_dense(piece) for piece in pieces]
    weights = None
    if any(piece.weights is not None for piece in arrays):
        own = [np.ones(p.shape) if p.weights is None else p.weights for p in arrays]
        weights = np.concatenate(own, axis=mode)
    if weights is not None and (weights == 1).all():
        weights = None
    return Dense(np.concatenate([piece.array for piece in arrays], axis=mode), weights)


def _joined_sparse(pieces: tuple[Any, ...], mode: int) -> SparseTensor:
    """Join entries one after the other, counting the rows of the mode on."""
    starts = np.cumsum([0, *(piece.shape[mode] for piece in pieces)])
    shape = list(pieces[0].shape)
    shape[mode] = int(starts[-1])

    def counted_on(columns: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        moved = [
            [c.astype(np.int64) + (start if n == mode else 0) for n, c in enumerate(piece)]
            for piece, start in zip(columns, starts, strict=False)
        ]
        return tuple(np.concatenate(parts) for parts in zip(*moved, strict=True))

    weights = None
    if any(piece.weights is not None for piece in pieces):
        own = [np.ones(p.nnz) if p.weights is None else p.weights for p in pieces]
        weights = np.concatenate(own)
    return SparseTensor(
        counted_on([piece.indices for piece in pieces]),
        np.concatenate([piece.values for piece in pieces]),
        shape,
        pieces[0].absent,
        weights,
        counted_on([piece.missing for piece in pieces]),
    )
