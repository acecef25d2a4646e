"""Uniform blocks and uniform fibers, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd.sampling.base import Draws


@dataclass(frozen=True)
class Uniform:
    """Every mode and every fiber with the same probability, with replacement."""

    def draw(
        self, shape: tuple[int, ...], n_iterations: int, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        modes = rng.integers(len(shape), size=n_iterations)
        fibers = np.empty((n_iterations, n_fibers, len(shape)), dtype=np.int64)
        for mode, size in enumerate(shape):
            # A bound below 2^32 makes the generator use 32-bit draws, twice as fast.
            kind = np.int32 if size < 2**31 else np.int64
            fibers[:, :, mode] = rng.integers(size, size=(n_iterations, n_fibers), dtype=kind)
        return Draws(modes, fibers)
