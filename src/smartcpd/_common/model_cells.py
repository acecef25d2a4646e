"""The cells of a low-rank model: some of them, or all of them piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from smartcpd.errors import InvalidParameterError

SLAB_CELLS = 1 << 20
"""Numbers worked on at once wherever a whole tensor is passed over: 8 MB of float64."""


def values_at(
    factors: Sequence[np.ndarray], weights: np.ndarray, indices: Sequence[np.ndarray]
) -> np.ndarray:
    """Model values of the cells whose positions `checked_indices` gave."""
    columns = [i.ravel() for i in indices]
    out = np.empty(columns[0].size, weights.dtype)
    step = max(1, SLAB_CELLS // weights.size)
    for start in range(0, out.size, step):
        piece = slice(start, start + step)
        H = weights * factors[0][columns[0][piece]]
        for A, i in zip(factors[1:], columns[1:], strict=True):
            H *= A[i[piece]]
        H.sum(axis=1, out=out[piece])
    return out.reshape(indices[0].shape)


def slabs(
    factors: Sequence[np.ndarray], weights: np.ndarray | float = 1.0, cells: int = SLAB_CELLS
) -> Iterator[tuple[slice, np.ndarray]]:
    """Pass over all model values, a few at a time.

    Yields
    ------
    where : slice
        The place of these values in the flattened (C order) tensor.
    m : ndarray, one-dimensional
        At most ``cells`` model values.
    """
    shape = [A.shape[0] for A in factors]
    # Cutting the modes into two groups of similar size keeps both Khatri-Rao products far smaller
    # than the tensor, even where the rank exceeds the size of the first or last mode.
    cut = min(range(1, len(shape) + 1), key=lambda k: math.prod(shape[:k]) + math.prod(shape[k:]))
    left, right = _khatri_rao(factors[:cut]) * weights, factors[cut:]
    R = left.shape[1]
    H = _khatri_rao(right) if right else np.ones((1, R), left.dtype)
    rows, columns = max(1, cells // len(H)), min(cells, len(H))
    for i in range(0, len(left), rows):
        for j in range(0, len(H), columns):
            m = (left[i : i + rows] @ H[j : j + columns].T).ravel()
            start = i * len(H) + j
            yield slice(start, start + m.size), m


def checked_indices(indices: Any, shape: tuple[int, ...]) -> list[np.ndarray]:
    """One array of positions a mode, all of one shape, all within bounds."""
    N = len(shape)
    if isinstance(indices, tuple):
        columns = [np.asarray(i) for i in indices]
        if len(columns) != N:
            raise InvalidParameterError(
                f"A tuple of indices needs one array for each of the {N} modes; got {len(columns)}."
            )
    else:
        table = np.asarray(indices)
        if table.ndim != 2 or table.shape[1] != N:
            raise InvalidParameterError(
                f"indices must have one row a cell and {N} columns, one a mode; "
                f"got shape {table.shape}. For one array a mode, pass a tuple; data of new slices "
                "goes to transform, and full() of the model gives all cells."
            )
        columns = list(table.T)
    for n, (i, size) in enumerate(zip(columns, shape, strict=True)):
        if i.size and i.dtype.kind not in "iu":
            raise InvalidParameterError(f"Indices of mode {n} must be integers; got {i.dtype}.")
        wrong = i[(i < 0) | (i >= size)]
        if wrong.size:
            raise InvalidParameterError(
                f"Index {wrong[0]} of mode {n} is out of bounds: "
                f"the mode has size {size}, so 0 to {size - 1}."
            )
    try:
        return [np.array(i, np.intp) for i in np.broadcast_arrays(*columns)]
    except ValueError:
        shapes = ", ".join(str(i.shape) for i in columns)
        raise InvalidParameterError(
            f"The index arrays of the modes do not fit together: shapes {shapes}."
        ) from None


def _khatri_rao(factors: Sequence[np.ndarray]) -> np.ndarray:
    H = factors[0]
    for A in factors[1:]:
        H = (H[:, None, :] * A).reshape(-1, A.shape[1])
    return H
