"""A sampler of whole fibers that are not empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smartcpd.sampling.base import Draws, Sampler, random_fibers
from smartcpd.sampling.nonzeros import Nonzeros


@dataclass(frozen=True)
class Nonempty(Sampler):
    """Draws fibers uniformly among those that are not empty, and reads all their nonzeros.

    Each drawn fiber stands for (number of fibers that are not empty) / (number drawn) fibers; the
    zeros are left to a sum in closed form.

    Examples
    --------
    >>> from smartcpd import sampling
    >>> sampling.get("nonempty").splits
    True
    """

    name = "nonempty"
    splits = True

    def n_events(self, storage: Any) -> int:
        fibers = np.mean([index.n_fibers for index in storage.fiber_indices])
        return int(self._n_fibers(storage) * len(storage.events) / max(fibers, 1))

    def draw(
        self, storage: Any, modes: np.ndarray, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        fibers = random_fibers(storage.shape, modes.size, n_fibers, rng)
        count = self._n_fibers(storage)
        events, weights = [], np.zeros(modes.size)
        for t, mode in enumerate(modes):
            index = storage.fiber_indices[mode]
            if index.n_fibers == 0:
                events.append(np.empty(0, np.int64))
                continue
            chosen = np.sort(rng.integers(index.n_fibers, size=count))
            events.append(index.entries_of(chosen))
            weights[t] = index.n_fibers / count
        starts = np.concatenate([[0], np.cumsum([e.size for e in events])]).astype(np.int64)
        return Draws(modes, fibers, np.concatenate(events), starts, weights)

    @staticmethod
    def _n_fibers(storage: Any) -> int:
        """Return as many fibers as hold about as many events as the sampler of nonzeros reads."""
        fibers = np.mean([index.n_fibers for index in storage.fiber_indices])
        return max(1, round(Nonzeros().n_events(storage) * fibers / max(len(storage.events), 1)))
