"""What a sampler is: a way to draw the part of the data that an iteration reads, without bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smartcpd._common.piece import Piece
from smartcpd._data.storage import Storage
from smartcpd.errors import IncompatibleError


class Draws(NamedTuple):
    """Samples for many iterations at once.

    Attributes
    ----------
    modes : (T,) int64
        The block that each iteration updates.
    fibers : (T, F, N) int64
        The fibers it reads, as indices in every mode; the entry of the updated mode is ignored.
    events : int64
        Positions of the nonzeros that the iterations read, one iteration after the other.
    event_starts : (T + 1,) int64
        Where each iteration's begin.
    event_weights : (T,) float64
        How many nonzeros, in the mean, each of an iteration's stands for.
    """

    modes: np.ndarray
    fibers: np.ndarray
    events: np.ndarray
    event_starts: np.ndarray
    event_weights: np.ndarray

    @classmethod
    def of_fibers(cls, modes: np.ndarray, fibers: np.ndarray) -> Draws:
        """Fibers only."""
        starts = np.zeros(modes.size + 1, np.int64)
        return cls(modes, fibers, np.empty(0, np.int64), starts, np.zeros(modes.size))


@dataclass(frozen=True)
class Sampler(Piece):
    """Draws the modes, fibers and events of many iterations."""

    splits: ClassVar[bool] = False
    """Whether nonzeros are drawn apart from a background of zeros.

    If so, fibers are read as if every cell were zero, and events hold what the nonzeros add. If
    not, fibers hold the data.
    """

    def check(self, storage: Storage) -> None:
        """Refuse data that this sampler cannot draw from."""
        if self.splits and storage.absent == "none":
            raise IncompatibleError(
                f"Sampler '{self}' draws the nonzeros of sparse data, and X is dense. Use "
                "sampler='uniform', or pass X as a SparseTensor."
            )
        if not self.splits and storage.absent == "unobserved":
            raise IncompatibleError(
                f"Sampler '{self}' reads whole fibers, unobserved cells among them. "
                "Use sampler='nonzeros' with absent='unobserved'."
            )

    def n_events(self, storage: Any) -> int:
        """About how many events an iteration reads."""
        return 0

    def draw(
        self, storage: Storage, modes: np.ndarray, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        """What one iteration for each of ``modes`` reads."""
        raise NotImplementedError


def random_fibers(
    shape: tuple[int, ...], n_iterations: int, n_fibers: int, rng: np.random.Generator
) -> np.ndarray:
    """Fibers drawn uniformly, with replacement."""
    fibers = np.empty((n_iterations, n_fibers, len(shape)), dtype=np.int64)
    for mode, size in enumerate(shape):
        # A bound below 2^32 makes the generator use 32-bit draws, twice as fast.
        kind = np.int32 if size < 2**31 else np.int64
        fibers[:, :, mode] = rng.integers(size, size=(n_iterations, n_fibers), dtype=kind)
    return fibers
