"""What a sampler is: a way to draw blocks and fibers, without bias."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np


class Draws(NamedTuple):
    """Samples for many iterations at once.

    Attributes
    ----------
    modes : (T,) int64
        The block that each iteration updates.
    fibers : (T, F, N) int64
        The fibers it reads, as indices in every mode; the entry of the updated mode is ignored.
    """

    modes: np.ndarray
    fibers: np.ndarray


class Sampler(Protocol):
    """Draws the modes and fibers of many iterations."""

    def draw(
        self, shape: tuple[int, ...], n_iterations: int, n_fibers: int, rng: np.random.Generator
    ) -> Draws: ...
