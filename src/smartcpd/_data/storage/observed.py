"""Observed values, and how much cells count, for modules outside of the storages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._data.storage.base import Storage


def is_whole(storage: Storage) -> bool:
    """Whether all observed values are whole numbers."""
    if storage.dtype.kind != "f":
        return True
    return all(bool((v == np.floor(v)).all()) for v in storage.observed_values())


def stacked_rows(shape: tuple[int, ...], index: Sequence[np.ndarray]) -> np.ndarray:
    """Cells, given by an index a mode, as their rows in the stacked factors."""
    return (np.stack(index) + offsets(shape)[:-1, None]).astype(np.uint32)


def weights_at(storage: Any, index: Sequence[np.ndarray]) -> np.ndarray:
    """How much some cells count; 0 for missing ones."""
    weights = np.empty(len(index[0]))
    storage.read_weights(stacked_rows(storage.shape, index), weights)
    return weights
