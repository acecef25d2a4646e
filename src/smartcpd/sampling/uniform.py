"""Uniform blocks and uniform fibers, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._data.storage import Storage
from smartcpd.sampling.base import Draws, Sampler, random_fibers


@dataclass(frozen=True)
class Uniform(Sampler):
    """Every mode and every fiber with the same probability, with replacement.

    On sparse data nearly all of these fibers are empty.
    """

    name = "uniform"

    def draw(
        self, storage: Storage, modes: np.ndarray, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        return Draws.of_fibers(modes, random_fibers(storage.shape, modes.size, n_fibers, rng))
