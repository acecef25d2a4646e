"""The expected information of a tensor about all loadings of a model together.

It is J' W J, with J the derivative of the model by the factors and W the curvature of the cells'
losses, the expected one where the loss knows it. For rows i and j of two modes its R x R block is,
up to their own entries, a sum over the cells that both have in common; for one row, over the cells
of its slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from smartcpd._common.model_cells import slabs
from smartcpd._common.stacked import offsets
from smartcpd._data.storage import Dense, SparseTensor
from smartcpd._data.storage.conversion import as_dense
from smartcpd._data.storage.observed import stacked_rows
from smartcpd._objectives.slices.dense import products
from smartcpd.losses import Loss


def cell_weights(storage: Dense | SparseTensor) -> np.ndarray | None:
    """Return how much each cell counts, as a dense array; None where all count the same."""
    weights = as_dense(storage).weights
    return None if weights is None else weights.astype(np.float64)


def bends_of(
    factors: Sequence[np.ndarray], loss: Loss, storage: Dense | SparseTensor, expected: bool
) -> np.ndarray:
    """Return W for every cell, times its weight: expected of the model, or as the data has it."""
    flat = np.empty(storage.n_cells)
    for where, m in slabs(factors):
        if expected:
            flat[where] = loss.expected_bends(m)
        else:
            cells = np.unravel_index(np.arange(where.start, where.stop), storage.shape)
            x = np.empty(m.size)
            storage.read_cells(stacked_rows(storage.shape, cells), x)
            flat[where] = loss.bends_at(x, m)
    W, weights = flat.reshape(storage.shape), cell_weights(storage)
    # What a missing cell holds may be no number.
    return W if weights is None else np.where(weights != 0, weights * W, 0.0)


def information(factors: Sequence[np.ndarray], W: np.ndarray) -> np.ndarray:
    """Return the matrix for all entries of the factors, mode after mode and row by row."""
    rank = factors[0].shape[1]
    starts = offsets(W.shape) * rank
    out = np.zeros((starts[-1], starts[-1]))
    for n, A in enumerate(factors):
        blocks = _row_blocks(factors, W, n)
        for i in range(len(A)):
            at = slice(starts[n] + i * rank, starts[n] + (i + 1) * rank)
            out[at, at] = blocks[i]
    for n, k in combinations(range(len(factors)), 2):
        part = _pair_block(factors, W, n, k)
        rows, columns = slice(starts[n], starts[n + 1]), slice(starts[k], starts[k + 1])
        out[rows, columns] = part
        out[columns, rows] = part.T
    return out


def _row_blocks(factors: Sequence[np.ndarray], W: np.ndarray, mode: int) -> np.ndarray:
    """Return the sum of W h h' over the slice of every row of a mode."""
    others = [A for n, A in enumerate(factors) if n != mode]
    H = products(others)
    flat = np.moveaxis(W, mode, 0).reshape(len(factors[mode]), -1)
    return np.stack([flat @ (H[:, r, None] * H) for r in range(H.shape[1])], axis=1)


def _pair_block(factors: Sequence[np.ndarray], W: np.ndarray, n: int, k: int) -> np.ndarray:
    """Return the block of two modes: entry (i, r) of one against entry (j, s) of the other."""
    A, B = factors[n], factors[k]
    rank = A.shape[1]
    rest = [F for mode, F in enumerate(factors) if mode not in (n, k)]
    H = products(rest) if rest else np.ones((1, rank))
    flat = np.moveaxis(W, (n, k), (0, 1)).reshape(len(A) * len(B), -1)
    out = np.empty((len(A), rank, len(B), rank))
    for r in range(rank):
        common = (flat @ (H[:, r, None] * H)).reshape(len(A), len(B), rank)
        # The model's derivative by a_ir has b_jr in it, and that by b_js has a_is.
        out[:, r] = common * B[None, :, r, None] * A[:, None, :]
    return out.reshape(len(A) * rank, len(B) * rank)


def places(factors: Sequence[np.ndarray], groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return for every entry of the factors the number that stands there; those of a factor that
    modes share have the numbers of its first mode.
    """
    rank = factors[0].shape[1]
    starts = offsets([len(A) for A in factors]) * rank
    found = np.arange(starts[-1])
    for first, *others in groups:
        for mode in others:
            found[starts[mode] : starts[mode + 1]] = found[starts[first] : starts[first + 1]]
    return np.unique(found, return_inverse=True)[1]


def gauge(
    factors: Sequence[np.ndarray],
    known: Sequence[np.ndarray] | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> np.ndarray:
    """Return the directions in which a component is scaled in one mode against the next: they
    change no model value, so that there is no information about them.

    A column of which an entry other than 0 is ``known`` cannot be scaled. The modes of one of the
    ``groups`` are scaled together.
    """
    rank = factors[0].shape[1]
    starts = offsets([len(A) for A in factors]) * rank
    known = [np.zeros(A.shape, bool) for A in factors] if known is None else known
    groups = [[n] for n in range(len(factors))] if groups is None else groups
    columns = [np.zeros((starts[-1], 0))]
    for r in range(rank):
        loose = [
            group
            for group in groups
            if not any((known[n][:, r] & (factors[n][:, r] != 0)).any() for n in group)
        ]
        for pair in pairwise(loose):
            direction = np.zeros((starts[-1], 1))
            for group, sign in zip(pair, (1.0, -1.0), strict=True):
                for mode in group:
                    part = direction[starts[mode] : starts[mode + 1], 0].reshape(-1, rank)
                    part[:, r] = sign / len(group) * factors[mode][:, r]
            columns.append(direction)
    return np.concatenate(columns, axis=1)
