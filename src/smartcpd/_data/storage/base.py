"""The base classes of storages: data, wherever it lies, and data that compiled loops can read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from smartcpd._data.storage.events import Events
from smartcpd._kernels.compiling import Block
from smartcpd.errors import IncompatibleError
from smartcpd.losses import Data, Loss


class FitNeeds(Protocol):
    """The memory, and the time for reading, that a fit of data outside memory takes."""

    def check(self) -> None:
        """Raise InvalidParameterError if the fit needs more memory than it may have."""
        ...

    def refusal(self, reader: str, able: str) -> IncompatibleError:
        """Return the error for a reader that needs the data in memory, naming those that do not."""
        ...

    def __str__(self) -> str: ...


class Storage(Protocol):
    """A tensor, and what fits need to know of it."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        ...

    @property
    def absent(self) -> str:
        """What the cells that are not stored are: "zero" or "unobserved"; "none" where all are
        stored."""
        ...

    @property
    def usual_sampler(self) -> str:
        """The name of the sampler that stochastic fits draw with unless another is asked for."""
        ...

    @property
    def n_cells(self) -> int:
        """Number of cells, as a Python integer: it may exceed any machine integer."""
        ...

    @property
    def n_stored(self) -> int:
        """Number of cells that are stored, which a pass over the data reads."""
        ...

    @property
    def n_observed(self) -> float:
        """The divisor of the mean loss: the number of observed cells, or the sum of their
        weights.
        """
        ...

    @property
    def n_missing(self) -> int:
        """Number of cells that were said to be missing."""
        ...

    @property
    def weighted(self) -> bool:
        """Whether some cells count more than others, or not at all."""
        ...

    @property
    def heaviest(self) -> float:
        """The largest weight of a cell."""
        ...

    @property
    def row_weights(self) -> list[np.ndarray]:
        """The mean weight of the cells of each row, mode by mode."""
        ...

    def unobserved_rows(self) -> list[np.ndarray]:
        """For each mode, the rows of which no cell was observed."""
        ...

    def mean(self) -> float:
        """The mean over all observed cells."""
        ...

    def typical(self) -> float:
        """About how large a model of nonnegative data is where it matters."""
        ...

    def mean_square(self) -> float:
        """The mean of the squares of all observed cells."""
        ...

    def lowest(self) -> float:
        """The smallest value of any observed cell."""
        ...

    def check(self, loss: Loss) -> None:
        """Raise InvalidDataError naming the first cell that ``loss`` cannot describe."""
        ...

    def observed_values(self) -> Iterator[np.ndarray]:
        """All values that were observed, some at a time; zeros that are not stored as a single one.

        Of data that is read in blocks, a sample.
        """
        ...

    def fit_needs(self, rank: int, loss: Loss | None = None) -> FitNeeds | None:
        """What a fit of this rank takes; None for data in memory, which takes little more.

        With a loss, the time that reading takes is measured where it is not known.
        """
        ...


class InMemory(Storage, Protocol):
    """A storage that compiled loops can read."""

    def handle(self) -> np.ndarray:
        """Addresses and strides, as integers, that ``gather_block`` reads the data by.

        The storage must stay alive while compiled code uses the handle.
        """
        ...

    def gather_block(self, dtype: str) -> Block:
        """The compiled function that fills an array with rows of chosen fibers."""
        ...

    def weights_handle(self) -> np.ndarray:
        """Return the handle of the weights for ``weigh_block``; empty if no cell has its own."""
        ...

    def weigh_block(self, dtype: str) -> Block:
        """Return the compiled function that fills an array with the weights of chosen fibers."""
        ...

    def weighted_values(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """The observed values that are stored, some at a time, and how much each of them counts;
        None where all count the same."""
        ...

    def some_cells(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """All cells, or so many at random if there are more, as an index array a mode; only those
        that are stored where the others were not observed."""
        ...

    def read_weights(self, rows: np.ndarray, w: np.ndarray) -> None:
        """Fill ``w`` with the weights of single cells, named as for ``read_cells``."""
        ...

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Fill ``x`` with the values of single cells.

        ``rows`` (N x cells, uint32) names them by their rows in the stacked factors.
        """
        ...


class DenseStorage:
    """Base of storages that have a value for every cell: in memory or on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def n_stored(self) -> int:
        return self.n_cells

    @property
    def absent(self) -> str:
        return "none"

    @property
    def usual_sampler(self) -> str:
        return "uniform"

    def observed_slabs(self) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
        """Slices from some index of the first mode on, and which of their cells were observed."""
        raise NotImplementedError

    def observed_values(self) -> Iterator[np.ndarray]:
        for _, slab, seen in self.observed_slabs():
            yield slab if seen is None else slab[seen]

    def drawn(self, sizes: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
        """Draw random rows of every mode, so many of each."""
        raise NotImplementedError

    def gathered(
        self,
        rows: Sequence[np.ndarray],
        loss: Loss | None = None,
        watch: Callable[[], object] | None = None,
    ) -> Any:
        """Return the cells of some rows of every mode; the tensor is read at no others.

        Cells that come from disk are checked, if it is said for which loss; ``watch`` is called
        before every block of them, and may raise an error to read no more.
        """
        raise NotImplementedError

    def fit_needs(self, rank: int, loss: Loss | None = None) -> FitNeeds | None:
        return None


class SparseStorage:
    """Base of storages that name some cells only: in memory, on disk or on other machines."""

    shape: tuple[int, ...]
    absent: str
    """The meaning of cells that are not stored: "zero" or "unobserved"."""

    @property
    def usual_sampler(self) -> str:
        return "nonzeros"

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        raise NotImplementedError

    @property
    def n_cells(self) -> int:
        return math.prod(self.shape)

    @property
    def n_stored(self) -> int:
        return self.nnz

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        raise NotImplementedError

    def mean(self) -> float:
        """The mean over all observed cells."""
        raise NotImplementedError

    @property
    def n_events(self) -> int:
        """Cells that passes read: the entries and, among zeros, those that are missing."""
        raise NotImplementedError

    def with_absent(self, absent: str) -> Any:
        """The same entries with another meaning of the cells that are not stored."""
        raise NotImplementedError

    def load(self) -> Any:
        """The whole tensor in memory."""
        raise NotImplementedError

    def marginals(self) -> list[np.ndarray]:
        """The sums over the slices of each mode, as if all their cells were known."""
        raise NotImplementedError

    def pieces(self, size: int) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
        """The entries, indices (of platform size) and values, at most so many at a time."""
        raise NotImplementedError

    def each_values(self) -> Iterator[np.ndarray]:
        """All values that are stored, some at a time."""
        raise NotImplementedError

    def observed_values(self) -> Iterator[np.ndarray]:
        yield from self.each_values()
        if self.absent == "zero":
            yield np.zeros(1, self.dtype)

    def fit_needs(self, rank: int, loss: Loss | None = None) -> FitNeeds | None:
        return None

    def check_zeros(self, loss: Loss, remedy: str) -> None:
        """Raise an error if cells that are not stored are zeros, which ``loss`` cannot describe."""
        if self.absent == "zero" and not loss.allows_zeros:
            raise IncompatibleError(
                f"Loss '{loss}' cannot describe exact zeros (it goes to infinity there), and the "
                f"{self.n_cells - self.nnz:,} cells that are not stored are zeros. Use loss="
                f"'poisson' or 'beta(0.5)', or {remedy} if nobody looked at them."
            )

    def some_events(self, count: int, rng: np.random.Generator) -> Events:
        """Draw at most so many of the cells that passes read, with replacement."""
        raise NotImplementedError

    def some_entries(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """The indices of so many entries, or of as many as are at hand, drawn with replacement."""
        return self.some_events(count, rng).rows(slice(None))


def impossible(values: np.ndarray, loss: Loss) -> np.ndarray | None:
    """Return which values a loss cannot describe; None where their type allows no such value."""
    if values.dtype.kind in "bu" and loss.data is not Data.BINARY:
        return None
    lowest, _ = loss.data.value
    bad = ~np.isfinite(values)
    if lowest > -np.inf:
        bad |= values < lowest
    if loss.data is Data.BINARY:
        bad |= (values != 0) & (values != 1)
    return bad


def random_cells(
    shape: tuple[int, ...], count: int, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """All cells of a shape, or so many drawn with replacement if there are more."""
    n_cells = math.prod(shape)
    if n_cells <= count:
        return np.unravel_index(np.arange(n_cells), shape)
    return tuple(rng.integers(size, size=count) for size in shape)
