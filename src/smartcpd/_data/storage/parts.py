"""Some rows of some modes of a tensor, as a tensor of the same kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.storage.dense import Dense
from smartcpd._data.storage.sparse import SparseTensor


@singledispatch
def part_of(storage: Any, rows: Mapping[int, np.ndarray]) -> Any:
    """Return the cells in chosen rows; ``rows`` maps modes to the rows that are taken, in their
    order and each once. Modes that it does not name stay as they are.
    """
    raise TypeError(f"{type(storage).__name__} is not in memory, so no part of it can be taken.")


@part_of.register
def _(storage: np.ndarray, rows: Mapping[int, np.ndarray]) -> np.ndarray:
    for mode, chosen in rows.items():
        storage = storage.take(chosen, axis=mode)
    return storage


@part_of.register
def _(storage: Dense, rows: Mapping[int, np.ndarray]) -> Dense:
    own = storage.weights
    return Dense(part_of(storage.array, rows), None if own is None else part_of(own, rows))


@part_of.register
def _(storage: SparseTensor, rows: Mapping[int, np.ndarray]) -> SparseTensor:
    shape = list(storage.shape)
    places = {}
    for mode, chosen in rows.items():
        places[mode] = np.full(shape[mode], -1)
        places[mode][chosen] = np.arange(len(chosen))
        shape[mode] = len(chosen)

    def moved(columns: tuple[np.ndarray, ...]) -> tuple[list[np.ndarray], np.ndarray]:
        kept = np.ones(len(columns[0]), bool)
        for mode, place in places.items():
            kept &= place[columns[mode]] >= 0
        new = [places[n][c[kept]] if n in places else c[kept] for n, c in enumerate(columns)]
        return new, kept

    columns, kept = moved(storage.indices)
    weights = None if storage.weights is None else storage.weights[kept]
    missing, _ = moved(storage.missing)
    return SparseTensor(
        tuple(columns), storage.values[kept], shape, storage.absent, weights, tuple(missing)
    )


def without_modes(storage: Any, modes: tuple[int, ...]) -> Any:
    """Return a tensor without modes of length 1, which have no other rows to tell apart."""
    if not modes:
        return storage
    if isinstance(storage, SparseTensor):
        kept = [n for n in range(storage.ndim) if n not in modes]
        if len(kept) < 2:  # A list has no use for being sparse.
            return np.squeeze(storage.to_dense(), axis=modes)
        return SparseTensor(
            tuple(storage.indices[n] for n in kept),
            storage.values,
            [storage.shape[n] for n in kept],
            storage.absent,
            storage.weights,
            tuple(storage.missing[n] for n in kept),
        )
    return np.squeeze(np.asarray(storage), axis=modes)


@singledispatch
def stored_cells(storage: Any) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return the cells that a tensor stores, an array of places a mode, and what they hold."""
    raise TypeError(f"{type(storage).__name__} is not in memory, so its cells cannot be listed.")


@stored_cells.register
def _(storage: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    return tuple(np.indices(storage.shape).reshape(storage.ndim, -1)), storage.ravel()


@stored_cells.register
def _(storage: SparseTensor) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    return storage.indices, storage.values
