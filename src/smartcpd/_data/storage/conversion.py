"""Dense arrays as sparse tensors, and the other way round; slices of either kind as one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from smartcpd._data.storage.dense import Dense
from smartcpd._data.storage.sparse import SparseTensor


def as_sparse(storage: Dense, unit: float = 1.0) -> SparseTensor:
    """The cells of an array that are not 0, with those that are missing or weigh otherwise.

    Weights are divided by ``unit``, the weight of the zeros that need not be stored.
    """
    X, own = storage.array, storage.weights
    if own is None:
        where = np.nonzero(X)
        return SparseTensor(where, X[where], X.shape)
    where = np.nonzero(((X != 0) | (own != unit)) & (own != 0))
    return SparseTensor(where, X[where], X.shape, "zero", own[where] / unit, np.nonzero(own == 0))


@singledispatch
def as_dense(storage: Dense | SparseTensor) -> Dense:
    """An array of all cells; those that were not observed weigh 0, and hold what any loss takes."""
    raise TypeError(f"{type(storage).__name__} is not in memory, so it is no dense array either.")


@as_dense.register
def _(storage: Dense) -> Dense:
    return storage


@as_dense.register
def _(storage: SparseTensor) -> Dense:
    zeros = storage.absent == "zero"
    array = storage.filled(0 if zeros else 1)
    array[storage.missing] = 1
    if zeros and not storage.weighted:
        return Dense(array)
    own = storage.weights
    weights = np.full(storage.shape, zeros, bool if own is None else np.float64)
    weights[storage.indices] = True if own is None else own
    weights[storage.missing] = 0
    return Dense(array, weights)


def joined(pieces: Sequence[Dense | SparseTensor], mode: int) -> Dense | SparseTensor:
    """Tensors that follow each other along a mode as one, sparse if all of them are."""
    sparse = [piece for piece in pieces if isinstance(piece, SparseTensor)]
    if len(sparse) == len(pieces):
        return _joined_sparse(sparse, mode)
    return _joined_dense([as_dense(piece) for piece in pieces], mode)


def _joined_dense(pieces: Sequence[Dense], mode: int) -> Dense:
    weights = None
    if any(piece.weighted for piece in pieces):
        own = [np.ones(p.shape, bool) if p.weights is None else p.weights for p in pieces]
        weights = np.concatenate(own, axis=mode)
    return Dense(np.concatenate([piece.array for piece in pieces], axis=mode), weights)


def _joined_sparse(pieces: Sequence[SparseTensor], mode: int) -> SparseTensor:
    """Entries one after the other, the rows of the mode counted on."""
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
