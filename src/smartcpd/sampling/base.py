"""The base class of samplers, which draw the part of the data that an iteration reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from smartcpd._common.piece import Piece
from smartcpd._data.storage import Storage
from smartcpd.errors import IncompatibleError


class Draws(NamedTuple):
    """The samples of T iterations, as a sampler drew them.

    Attributes
    ----------
    modes : (T,) int64
        The mode that each iteration updates.
    fibers : (T, F, N) int64
        The F fibers that each iteration reads, as indices in every mode; the index in the updated
        mode is ignored.
    events : int64
        Positions of the nonzeros that the iterations read, one iteration after the other.
    event_starts : (T + 1,) int64
        Where the events of each iteration begin.
    event_weights : (T,) float64
        How many nonzeros, in the mean, each event of an iteration stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import SparseTensor, sampling
    >>> X = SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], shape=(2, 2))
    >>> draws = sampling.get("nonzeros(5)").draw(X, np.array([0, 1]), 3, np.random.default_rng(0))
    >>> draws.fibers.shape, draws.event_starts
    ((2, 3, 2), array([ 0,  5, 10]))
    """

    modes: np.ndarray
    fibers: np.ndarray
    events: np.ndarray
    event_starts: np.ndarray
    event_weights: np.ndarray

    @classmethod
    def of_fibers(cls, modes: np.ndarray, fibers: np.ndarray) -> Draws:
        """Return draws that read fibers and no events.

        Parameters
        ----------
        modes : (T,) int64
            The mode that each iteration updates.
        fibers : (T, F, N) int64
            The fibers that each iteration reads.

        Returns
        -------
        Draws

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import sampling
        >>> draws = sampling.Draws.of_fibers(np.array([0, 1]), np.zeros((2, 3, 4), np.int64))
        >>> draws.fibers.shape, draws.events.size
        ((2, 3, 4), 0)
        """
        starts = np.zeros(modes.size + 1, np.int64)
        return cls(modes, fibers, np.empty(0, np.int64), starts, np.zeros(modes.size))


@dataclass(frozen=True)
class Sampler(Piece):
    """A sampler draws what many iterations read, without bias.

    Examples
    --------
    >>> from smartcpd import sampling
    >>> sampling.get("nonzeros(1000)")
    Nonzeros(batch=1000)
    """

    splits: ClassVar[bool] = False
    """Whether nonzeros are drawn apart from a background of zeros.

    If so, fibers are read as if every cell were zero, and events hold what the nonzeros add. If
    not, fibers hold the data.
    """

    def check(self, storage: Storage) -> None:
        """Refuse data that this sampler cannot draw from.

        Parameters
        ----------
        storage : Storage
            The data, such as a `SparseTensor`.

        Raises
        ------
        IncompatibleError
            If the sampler draws nonzeros and the data is dense, or reads whole fibers and cells
            that are not stored were not observed.

        Examples
        --------
        >>> from smartcpd import SparseTensor, sampling
        >>> X = SparseTensor([[0, 1]], [3.0], shape=(2, 2), absent="unobserved")
        >>> sampling.get("nonzeros").check(X)
        >>> sampling.get("uniform").check(X)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        smartcpd.errors.IncompatibleError: Sampler 'uniform' reads whole fibers, ...
        """
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
        """Return about how many events an iteration reads.

        Parameters
        ----------
        storage : Storage
            The data, such as a `SparseTensor`.

        Returns
        -------
        int
            0 for samplers that read fibers alone.

        Examples
        --------
        >>> from smartcpd import SparseTensor, sampling
        >>> X = SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], shape=(2, 2))
        >>> sampling.get("nonzeros(5)").n_events(X), sampling.get("uniform").n_events(X)
        (5, 0)
        """
        return 0

    def draw(
        self, storage: Storage, modes: np.ndarray, n_fibers: int, rng: np.random.Generator
    ) -> Draws:
        """Return what one iteration for each of ``modes`` reads.

        Parameters
        ----------
        storage : Storage
            The data, as a dense array or a `SparseTensor` is stored.
        modes : ndarray of int
            The mode that each iteration updates.
        n_fibers : int
            Number of fibers of an iteration.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        Draws

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor, sampling
        >>> X = SparseTensor([[0, 1], [1, 0]], [3.0, 4.0], shape=(2, 2))
        >>> modes, rng = np.array([0, 1, 0]), np.random.default_rng(0)
        >>> draws = sampling.get("nonzeros(5)").draw(X, modes, n_fibers=2, rng=rng)
        >>> draws.fibers.shape, draws.event_starts, draws.event_weights
        ((3, 2, 2), array([ 0,  5, 10, 15]), array([0.4, 0.4, 0.4]))
        """
        raise NotImplementedError


def random_fibers(
    shape: tuple[int, ...], n_iterations: int, n_fibers: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw fibers uniformly, with replacement."""
    fibers = np.empty((n_iterations, n_fibers, len(shape)), dtype=np.int64)
    for mode, size in enumerate(shape):
        # A bound below 2^32 makes the generator use 32-bit draws, twice as fast.
        kind = np.int32 if size < 2**31 else np.int64
        fibers[:, :, mode] = rng.integers(size, size=(n_iterations, n_fibers), dtype=kind)
    return fibers
