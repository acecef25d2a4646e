"""The compression of a tensor to its core: rows scaled so that noise is even, then truncated bases.

The bases come from Gram matrices that are summed slab by slab, so no unfolding and no copy of the
tensor is ever made; the largest array is the tensor with its first mode already compressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from smartcpd._data.storage import Dense
from smartcpd._strategies.compression.filling import Filling, slice_sums
from smartcpd.losses import Data, Domain, Loss

SLAB_CELLS = 1 << 18
LOWEST_SCALE = 0.05
"""A slice with a smaller share of the mean than this is scaled as if it had it."""
LARGEST_GRAM = 600
GRAM_CELLS = 1 << 21
"""Number of cells that tell a basis as well as more would."""


def is_linear(loss: Loss) -> bool:
    """Whether the data itself, not a transform of it, is about a sum of components."""
    return loss.domain is Domain.NONNEGATIVE or loss.data is Data.REAL


@dataclass(frozen=True)
class Scales:
    """A number for every row of every mode; their product makes the noise of a cell about even."""

    rows: list[np.ndarray]

    @classmethod
    def of(cls, storage: Dense, loss: Loss) -> Scales:
        """Choose scales by which the variance of a cell is a power of its mean: 0 for real data, 1
        for counts, 2 for positive measurements; the mean is taken as a product over its slices.
        """
        if loss.data is Data.REAL:
            return cls([np.ones(size) for size in storage.shape])
        power = 2 if loss.data is Data.NONNEGATIVE else 1
        rows = []
        for total in slice_sums(storage):
            share = total / (total.mean() or 1.0)
            rows.append(np.maximum(share, LOWEST_SCALE) ** (-power / 2))
        return cls(rows)


@dataclass(frozen=True)
class Core:
    """A core: the scaled tensor is about ``core`` times the basis of each mode."""

    core: np.ndarray
    bases: list[np.ndarray]
    """Orthonormal columns, (I_n x K_n)."""
    scales: Scales

    @classmethod
    def of(cls, storage: Dense, scales: Scales, width: int, filling: Filling | None = None) -> Core:
        """A sequentially truncated higher-order singular value decomposition.

        ``filling`` stands for the missing cells, if there are any.
        """
        shape = storage.shape
        first = _first_mode(shape)
        basis = _leading(_gram(storage, first, scales, filling), width)
        core = _contracted(storage, first, scales, filling, basis)
        bases = {first: basis}
        for mode in sorted(range(len(shape)), key=lambda k: shape[k]):
            if mode == first:
                continue
            unfolded = np.moveaxis(core, mode, 0).reshape(shape[mode], -1)
            basis = _left_basis(unfolded, width)
            rest = [size for k, size in enumerate(core.shape) if k != mode]
            core = np.moveaxis((basis.T @ unfolded).reshape(-1, *rest), 0, mode)
            bases[mode] = basis
        ordered = [bases[mode].astype(np.float64) for mode in range(len(shape))]
        return cls(np.ascontiguousarray(core, dtype=np.float64), ordered, scales)


def slabs(
    storage: Dense, axis: int, filling: Filling | None = None, every: int = 1
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield some slices at a time, as float32; all, or one of ``every`` so many."""
    X, weights = storage.array, storage.weights
    step = max(1, SLAB_CELLS * X.shape[axis] // X.size)
    for start in range(0, X.shape[axis], step * every):
        where = slice(start, min(start + step, X.shape[axis]))
        at = (slice(None),) * axis + (where,)
        if weights is None or filling is None:
            yield where, X[at].astype(np.float32)
        else:
            yield where, filling.put_into(X[at], weights[at] != 0, axis, where)


def _scaled_slabs(
    storage: Dense, mode: int, scales: Scales, filling: Filling | None, every: int = 1
) -> Iterator[tuple[slice, np.ndarray]]:
    """Slabs along another mode than ``mode``, scaled, with ``mode`` first and the rest flat."""
    shape = storage.shape
    axis = 1 if mode == 0 else 0
    for where, slab in slabs(storage, axis, filling, every):
        for k, rows in enumerate(scales.rows):
            own = rows[where] if k == axis else rows
            slab *= own.astype(np.float32).reshape([-1 if j == k else 1 for j in range(len(shape))])
        if mode == len(shape) - 1:
            yield where, slab.reshape(-1, shape[mode]).T
        else:
            yield where, np.moveaxis(slab, mode, 0).reshape(shape[mode], -1)


def _gram(storage: Dense, mode: int, scales: Scales, filling: Filling | None) -> np.ndarray:
    """Return the Gram matrix of all slabs, or of some that are spread over a large tensor."""
    gram = np.zeros((storage.shape[mode], storage.shape[mode]))
    every = max(1, storage.n_cells // GRAM_CELLS)
    for _, slab in _scaled_slabs(storage, mode, scales, filling, every):
        gram += slab @ slab.T
    return gram


def _contracted(
    storage: Dense, mode: int, scales: Scales, filling: Filling | None, basis: np.ndarray
) -> np.ndarray:
    """The scaled tensor in the coordinates of a basis of one mode."""
    shape = list(storage.shape)
    shape[mode] = basis.shape[1]
    out = np.empty(shape, np.float32)
    axis = 1 if mode == 0 else 0
    narrow = np.ascontiguousarray(basis.T, dtype=np.float32)
    for where, slab in _scaled_slabs(storage, mode, scales, filling):
        rest = [where.stop - where.start if k == axis else s for k, s in enumerate(shape)]
        del rest[mode]
        block = (narrow @ slab).reshape(-1, *rest)
        out[(slice(None),) * axis + (where,)] = np.moveaxis(block, 0, mode)
    return out


def _first_mode(shape: tuple[int, ...]) -> int:
    """The mode to compress first: a long one, but not so long that its Gram matrix is costly."""
    fitting = [k for k, size in enumerate(shape) if size <= LARGEST_GRAM]
    if fitting:
        return max(fitting, key=lambda k: (shape[k], k))
    return min(range(len(shape)), key=lambda k: shape[k])


def _leading(gram: np.ndarray, width: int) -> np.ndarray:
    """The eigenvectors of the largest eigenvalues."""
    _, vectors = np.linalg.eigh(gram)
    return np.ascontiguousarray(vectors[:, ::-1][:, : min(width, len(gram))])


def _left_basis(M: np.ndarray, width: int) -> np.ndarray:
    """The leading left singular vectors, from the Gram matrix of the shorter side."""
    if M.shape[0] <= M.shape[1]:
        return _leading((M @ M.T).astype(np.float64), width)
    right = _leading((M.T @ M).astype(np.float64), width)
    basis, _ = np.linalg.qr(M @ right)
    return basis
