"""The sampler of the paper: uniform modes and uniform fibers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._data.storage import Storage
from smartcpd.sampling.base import Draws, Sampler, random_fibers


@dataclass(frozen=True)
class Uniform(Sampler):
    """Draws every fiber with the same probability, with replacement.

    On sparse data nearly all of these fibers are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import SparseTensor, sampling
    >>> X = SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], shape=(2, 2))
    >>> draws = sampling.get("uniform").draw(X, np.array([0, 1]), 3, np.random.default_rng(0))
    >>> draws.fibers.shape
    (2, 3, 2)
    """

    name = "uniform"

    def draw(
        self, storage: Storage, modes: np.ndarray, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        return Draws.of_fibers(modes, random_fibers(storage.shape, modes.size, n_fibers, rng))
