"""A sampler of single nonzeros, which leaves the zeros to a sum in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd.errors import InvalidParameterError
from smartcpd.sampling.base import Draws, Sampler, random_fibers

MIN_BATCH = 500


@dataclass(frozen=True)
class Nonzeros(Sampler):
    """Draws events uniformly among the nonzeros; the zeros are left to a sum in closed form.

    Parameters
    ----------
    batch : int, optional
        Events an iteration reads: by default a 300th of all, but at least as many as the factors
        have rows, since an iteration updates a whole factor however few events it saw.

    Examples
    --------
    >>> from smartcpd import SparseTensor, sampling
    >>> X = SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], shape=(2, 2))
    >>> sampling.get("nonzeros(5)").n_events(X)
    5
    """

    batch: int | None = None

    name = "nonzeros"
    splits = True

    def __post_init__(self) -> None:
        if self.batch is not None and not (self.batch >= 1 and self.batch == int(self.batch)):
            raise InvalidParameterError(
                f"batch must be a whole number of at least 1; got {self.batch!r}."
            )

    def n_events(self, storage: Any) -> int:
        if self.batch is not None:
            return int(self.batch)
        count = len(storage.events)
        return int(min(count, max(count // 300, sum(storage.shape), MIN_BATCH)))

    def draw(
        self, storage: Any, modes: np.ndarray, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        fibers = random_fibers(storage.shape, modes.size, n_fibers, rng)
        batch, nnz = self.n_events(storage), len(storage.events)
        # Sorted, so that neighbours share rows of the factors in the cache.
        events = np.sort(rng.integers(max(nnz, 1), size=(modes.size, batch if nnz else 0)))
        starts = np.arange(modes.size + 1) * events.shape[1]
        weights = np.full(modes.size, nnz / max(batch, 1))
        return Draws(modes, fibers, events.reshape(-1), starts, weights)
