"""A part of an array on disk, by which a model that was fitted to the whole is judged."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode, taken_off
from smartcpd._data.storage import Dense
from smartcpd._data.tiled import TiledArray
from smartcpd._fitting.model import CPModel

CELLS = 1 << 22


def excerpt(model: CPModel, X: Any) -> tuple[CPModel, Any, str]:
    """Return model and data of random rows of each mode, with a remark that says so; both as they
    are, and no remark, unless the data is an array on disk.
    """
    return _excerpt(taken_off(X)[0], model) or (model, X, "")


@singledispatch
def _excerpt(storage: Any, model: CPModel) -> tuple[CPModel, Dense, str] | None:
    """Return an excerpt of data that cannot be judged by all of it; None for other data."""
    return None


@_excerpt.register
def _(storage: TiledArray, model: CPModel) -> tuple[CPModel, Dense, str]:
    edge = math.ceil(CELLS ** (1 / len(storage.shape)))
    rows = storage.drawn([min(edge, size) for size in storage.shape], np.random.default_rng(0))
    factors = [A[r] for A, r in zip(model.factors, rows, strict=True)]
    modes = None
    if model.modes is not None:
        pairs = zip(model.modes, rows, strict=True)
        modes = [Mode(mode.name, mode.labels[r], mode.kind) for mode, r in pairs]
    few = CPModel(factors, model.weights, model.loss_function, modes)
    shape = "x".join(str(len(r)) for r in rows)
    remark = f"How well the model fits was measured on {shape} cells from random blocks."
    return few, storage.gathered(rows), remark
