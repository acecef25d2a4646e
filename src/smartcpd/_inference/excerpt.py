"""A part of an array on disk, by which a model that was fitted to the whole is judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.storage import Storage
from smartcpd._data.tiled import TiledArray
from smartcpd._fitting.model import CPModel

CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Excerpt:
    """The data that a model is judged by: all of it, or random rows of each mode of an array that
    is not in memory."""

    storage: Storage
    rows: list[np.ndarray] | None = None
    """Those of each mode; None if all are there."""

    @classmethod
    def of(cls, storage: Storage) -> Excerpt:
        """Return all of a storage if it is in memory, else as much of it as is worth reading."""
        return _excerpt(storage)

    def rows_of(self, model: CPModel) -> CPModel:
        """The part of a model of the whole that is about these rows."""
        if self.rows is None:
            return model
        factors = [A[r] for A, r in zip(model.factors, self.rows, strict=True)]
        pairs = zip(model.named_modes, self.rows, strict=True)
        modes = tuple(Mode(mode.name, mode.labels[r], mode.kind) for mode, r in pairs)
        return replace(model, factors=factors, modes=modes)

    def in_whole(self, index: Sequence[int]) -> tuple[int, ...]:
        """A cell of the excerpt by its place in the whole."""
        if self.rows is None:
            return tuple(index)
        return tuple(int(r[i]) for r, i in zip(self.rows, index, strict=True))

    @property
    def remark(self) -> str:
        """What a reader should know of it; nothing if it is the whole."""
        if self.rows is None:
            return ""
        shape = "x".join(str(len(r)) for r in self.rows)
        return f"How well the model fits was measured on {shape} cells from random blocks."


@singledispatch
def _excerpt(storage: Storage) -> Excerpt:
    return Excerpt(storage)


@_excerpt.register
def _(storage: TiledArray) -> Excerpt:
    edge = math.ceil(CELLS ** (1 / len(storage.shape)))
    rows = storage.drawn([min(edge, size) for size in storage.shape], np.random.default_rng(0))
    return Excerpt(storage.gathered(rows), rows)
