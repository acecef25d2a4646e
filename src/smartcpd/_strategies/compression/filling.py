"""A model that stands for the missing cells of a dense tensor while it is compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.storage import Dense
from smartcpd.losses import Data, Loss

TINY = 1e-300


@dataclass(frozen=True)
class Filling:
    """A model of the data, as factors (I_n x R). Nothing of the tensor's size is ever made."""

    factors: list[np.ndarray]

    @classmethod
    def of_marginals(cls, storage: Dense, loss: Loss) -> Filling:
        """The product of the means of slices, or the mean where data may be negative."""
        mean = storage.mean()
        if loss.data is Data.REAL or mean <= 0:
            columns = [np.ones((size, 1)) for size in storage.shape]
            return cls([columns[0] * mean, *columns[1:]])
        columns = [(sums / max(sums.mean(), TINY))[:, None] for sums in slice_sums(storage)]
        return cls([columns[0] * mean, *columns[1:]])

    def put_into(self, slab: np.ndarray, seen: np.ndarray, axis: int, where: slice) -> np.ndarray:
        """Return some slices along an axis, as float32, with the model where they were not
        ``seen``.
        """
        factors = [F[where] if k == axis else F for k, F in enumerate(self.factors)]
        model = _full([F.astype(np.float32) for F in factors]).reshape(slab.shape)
        np.copyto(model, slab, where=seen, casting="unsafe")
        return model


def slice_sums(storage: Dense) -> list[np.ndarray]:
    """The sums over the slices of each mode, as if their missing cells were like the others; a
    slice without any other is taken for an average one."""
    sums = [np.zeros(size) for size in storage.shape]
    counts = [np.zeros(size) for size in storage.shape]
    for start, slab, seen in storage.observed_slabs():
        known = (slab if seen is None else np.where(seen, slab, 0)).astype(np.float32)
        for mode, (total, count) in enumerate(zip(sums, counts, strict=True)):
            others = tuple(k for k in range(slab.ndim) if k != mode)
            rows = slice(start, start + len(slab)) if mode == 0 else slice(None)
            total[rows] += known.sum(axis=others)
            count[rows] += slab.size // slab.shape[mode] if seen is None else seen.sum(axis=others)
    scaled = []
    for total, count in zip(sums, counts, strict=True):
        of_all = storage.n_cells // total.size
        average = of_all * total.sum() / max(count.sum(), 1)
        scaled.append(np.where(count > 0, total * (of_all / np.maximum(count, 1)), average))
    return scaled


def _full(factors: Sequence[np.ndarray]) -> np.ndarray:
    """All cells of a model; its last mode is the only one that is multiplied out by a matrix
    product."""
    left = factors[0]
    for F in factors[1:-1]:
        left = (left[:, None, :] * F).reshape(-1, F.shape[1])
    return np.asarray(left @ factors[-1].T)
