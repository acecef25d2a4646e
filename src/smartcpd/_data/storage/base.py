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
    """Base of storages that name some cells only: in memory, on disk or on other machines.

    What `SparseTensor` and `PartitionedTensor` have in common is described here.
    """

    shape: tuple[int, ...]
    """The length of each mode."""
    absent: str
    """The meaning of cells that are not stored: "zero" or "unobserved"."""

    @property
    def usual_sampler(self) -> str:
        """The name of the sampler that stochastic fits draw with unless another is asked for."""
        return "nonzeros"

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        raise NotImplementedError

    @property
    def n_cells(self) -> int:
        """Number of cells, as a Python integer: it may exceed any machine integer."""
        return math.prod(self.shape)

    @property
    def n_stored(self) -> int:
        """Number of cells that are stored, which a pass over the data reads."""
        return self.nnz

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        raise NotImplementedError

    @property
    def n_events(self) -> int:
        """Cells that passes read: the entries and, among zeros, those that are missing."""
        raise NotImplementedError

    @property
    def n_missing(self) -> int:
        """Number of cells that were said to be missing."""
        raise NotImplementedError

    @property
    def n_observed(self) -> float:
        """The divisor of the mean loss: the observed cells, or the sum of their weights."""
        raise NotImplementedError

    @property
    def weighted(self) -> bool:
        """Whether some cells count more than others, or not at all."""
        raise NotImplementedError

    @property
    def heaviest(self) -> float:
        """The largest weight of a cell."""
        raise NotImplementedError

    @property
    def row_weights(self) -> list[np.ndarray]:
        """The mean weight of the cells of each row, mode by mode."""
        raise NotImplementedError

    def unobserved_rows(self) -> list[np.ndarray]:
        """Return for each mode the rows of which no cell was observed.

        Returns
        -------
        list of arrays of int

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [2, 1]], [3, 4], shape=(3, 2), absent="unobserved")
        >>> X.unobserved_rows()
        [array([1]), array([], dtype=int64)]
        """
        raise NotImplementedError

    def mean(self) -> float:
        """Return the mean over all observed cells, zeros among them.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> X.mean(), X.with_absent("unobserved").mean()
        (2.0, 4.0)
        """
        raise NotImplementedError

    def mean_square(self) -> float:
        """Return the mean of the squares of all observed cells.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2)).mean_square()
        8.5
        """
        raise NotImplementedError

    def typical(self) -> float:
        """Return about how large a model is where it matters, by which starts are scaled.

        It is what the best model of rank one predicts at the nonzeros, in the mean. The mean over
        all cells says little: it vanishes with the size of the tensor.

        Returns
        -------
        float

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [0, 1], [9, 9]], [4, 4, 1], shape=(10, 10))
        >>> round(X.mean(), 2), X.typical() > 1
        (0.09, True)
        """
        raise NotImplementedError

    def lowest(self) -> float:
        """Return the smallest value of any observed cell.

        Returns
        -------
        float
            At most 0 where cells that are not stored are zeros.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> X.lowest(), X.with_absent("unobserved").lowest()
        (0.0, 3.0)
        """
        raise NotImplementedError

    def check(self, loss: Loss) -> None:
        """Raise an error if there is a cell that a loss cannot describe.

        Parameters
        ----------
        loss : Loss
            The loss that a fit is to use.

        Raises
        ------
        InvalidDataError
            If a value is none that the loss allows; the message names the first one.
        IncompatibleError
            If cells that are not stored are zeros, and the loss has no place for zeros.

        Examples
        --------
        >>> from smartcpd import SparseTensor, losses
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, -5], shape=(2, 2))
        >>> X.check(losses.get("gaussian"))
        >>> X.check(losses.get("poisson"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        smartcpd.errors.InvalidDataError: X[1, 1] is -5: loss 'poisson' needs counts, ...
        """
        raise NotImplementedError

    def with_absent(self, absent: str) -> Any:
        """Return the same entries with another meaning of the cells that are not stored.

        Parameters
        ----------
        absent : {"zero", "unobserved"}
            The meaning of the cells that are not stored.

        Returns
        -------
        A tensor of the same kind.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> SparseTensor([[0, 0], [1, 1]], [3, 4], shape=(2, 2)).with_absent("unobserved")
        SparseTensor(2x2, 2 observed, 50 %, int64)
        """
        raise NotImplementedError

    def load(self) -> Any:
        """Return the whole tensor in memory.

        Returns
        -------
        SparseTensor
            The tensor itself, if it is in memory already.

        Examples
        --------
        >>> import smartcpd
        >>> smartcpd.write("events.parts", smartcpd.SparseTensor([[0, 1], [1, 0]], [3, 4]))
        >>> smartcpd.read("events.parts").load()
        SparseTensor(2x2, 2 nonzeros, 50 %, int64)
        """
        raise NotImplementedError

    def marginals(self) -> list[np.ndarray]:
        """Return the sums over the slices of each mode, as if all their cells were known.

        Returns
        -------
        list of arrays
            One number for each row of each mode.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> SparseTensor([[0, 0], [0, 1]], [3, 5], shape=(2, 2)).marginals()
        [array([8., 0.]), array([3., 5.])]
        """
        raise NotImplementedError

    def pieces(self, size: int) -> Iterator[tuple[list[np.ndarray], np.ndarray]]:
        """Yield the entries, some at a time, for those who cannot hold all of them.

        Parameters
        ----------
        size : int
            The most entries of a piece.

        Yields
        ------
        indices : list of integer arrays, one a mode
            The cells.
        values : array
            What they hold.

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [0, 1], [1, 1]], [3, 5, 7], shape=(2, 2))
        >>> [values.tolist() for indices, values in X.pieces(2)]
        [[3, 5], [7]]
        """
        raise NotImplementedError

    def each_values(self) -> Iterator[np.ndarray]:
        """Yield all values that are stored, some at a time.

        Yields
        ------
        array

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> [values.tolist() for values in X.each_values()]
        [[3, 5]]
        """
        raise NotImplementedError

    def observed_values(self) -> Iterator[np.ndarray]:
        """Yield all values that were observed, some at a time.

        Zeros that are not stored come as a single one: whoever asks wants to know which values
        there are, as `smartcpd.choose_loss` does.

        Yields
        ------
        array

        Examples
        --------
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> [values.tolist() for values in X.observed_values()]
        [[3, 5], [0]]
        """
        yield from self.each_values()
        if self.absent == "zero":
            yield np.zeros(1, self.dtype)

    def fit_needs(self, rank: int, loss: Loss | None = None) -> FitNeeds | None:
        """Return what a fit of this rank takes, in memory and in time for reading.

        Parameters
        ----------
        rank : int
            Number of components.
        loss : Loss, optional
            With one, the time that a pass over the data takes is measured.

        Returns
        -------
        FitNeeds or None
            To be printed; None for data in memory, which takes little more.

        Examples
        --------
        >>> from smartcpd import SparseTensor, partitions
        >>> X = SparseTensor([[0, 1], [1, 0]], [3, 4], shape=(2, 2))
        >>> X.fit_needs(10) is None
        True
        >>> needs = partitions.write_tensor("events.parts", X).fit_needs(10)
        >>> print(str(needs)[:24])
        read from disk in 1 part
        """
        return None

    def check_zeros(self, loss: Loss, remedy: str) -> None:
        """Raise an error if cells that are not stored are zeros, which a loss cannot describe.

        Parameters
        ----------
        loss : Loss
            The loss that a fit is to use.
        remedy : str
            What the message advises where nobody looked at these cells.

        Raises
        ------
        IncompatibleError
            If there are such zeros.

        Examples
        --------
        >>> from smartcpd import SparseTensor, losses
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> X.check_zeros(losses.get("gamma"), "absent='unobserved'")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        smartcpd.errors.IncompatibleError: Loss 'gamma' cannot describe exact zeros ...
        """
        if self.absent == "zero" and not loss.allows_zeros:
            raise IncompatibleError(
                f"Loss '{loss}' cannot describe exact zeros (it goes to infinity there), and the "
                f"{self.n_cells - self.nnz:,} cells that are not stored are zeros. Use loss="
                f"'poisson' or 'beta(0.5)', or {remedy} if nobody looked at them."
            )

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Fill ``x`` with the values of single cells; those that are not stored read as zero.

        Of a tensor on disk every part is read, so that it pays to ask for many cells at a time.

        Parameters
        ----------
        rows : (N x cells) array of uint32
            The cells by their rows in the stacked factors: the rows of the second mode are counted
            on from those of the first, and so on.
        x : array of float64
            Where the values go.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> rows = np.array([[0, 1], [2 + 1, 2 + 1]], np.uint32)  # the cells (0, 1) and (1, 1)
        >>> x = np.empty(2)
        >>> X.read_cells(rows, x)
        >>> x
        array([0., 5.])
        """
        raise NotImplementedError

    def read_weights(self, rows: np.ndarray, w: np.ndarray) -> None:
        """Fill ``w`` with the weights of single cells, 0 for those that are missing.

        Parameters
        ----------
        rows : (N x cells) array of uint32
            The cells, as for `read_cells`.
        w : array of float64
            Where the weights go.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2), missing=[[0, 1]])
        >>> rows = np.array([[0, 1], [2 + 1, 2 + 1]], np.uint32)  # the cells (0, 1) and (1, 1)
        >>> w = np.empty(2)
        >>> X.read_weights(rows, w)
        >>> w
        array([0., 1.])
        """
        raise NotImplementedError

    def some_events(self, count: int, rng: np.random.Generator) -> Events:
        """Draw so many of the cells that passes read, with replacement; all if there are no more.

        Parameters
        ----------
        count : int
            How many.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        Events
            Their ``indices``, ``values`` and ``weights``.

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> len(X.some_events(2, np.random.default_rng(0)))
        2
        """
        raise NotImplementedError

    def some_entries(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the indices of so many entries, drawn with replacement.

        Parameters
        ----------
        count : int
            How many; of a tensor on disk, as many as are at hand if that is less.
        rng : numpy.random.Generator
            The source of random numbers.

        Returns
        -------
        list of integer arrays, one a mode

        Examples
        --------
        >>> import numpy as np
        >>> from smartcpd import SparseTensor
        >>> X = SparseTensor([[0, 0], [1, 1]], [3, 5], shape=(2, 2))
        >>> [column.size for column in X.some_entries(4, np.random.default_rng(0))]
        [4, 4]
        """
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
