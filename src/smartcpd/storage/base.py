"""What a storage is: data the compiled loops can read fibers from."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from smartcpd.errors import IncompatibleError
from smartcpd.kernels.compiling import Block
from smartcpd.losses import Loss


class Storage(Protocol):
    """A tensor, seen through the fibers of its modes."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def n_cells(self) -> int:
        """Number of cells, as a Python integer: it may exceed any machine integer."""
        ...

    @property
    def n_observed(self) -> int:
        """Number of cells that the mean loss is taken over."""
        ...

    def handle(self) -> np.ndarray:
        """Addresses and strides, as integers, that ``gather_block`` reads the data by.

        The storage must stay alive while compiled code uses the handle.
        """
        ...

    def gather_block(self, dtype: str) -> Block:
        """The compiled function that fills an array with rows of chosen fibers."""
        ...

    def read_cells(self, rows: np.ndarray, x: np.ndarray) -> None:
        """Fill ``x`` with the values of single cells.

        ``rows`` (N x cells, uint32) names them by their rows in the stacked factors.
        """
        ...

    def mean(self) -> float:
        """The mean over all cells."""
        ...

    def typical(self) -> float:
        """About how large a model of nonnegative data is where it matters."""
        ...

    def mean_square(self) -> float:
        """The mean of the squares of all cells."""
        ...

    def lowest(self) -> float:
        """The smallest value of any cell."""
        ...

    def check(self, loss: Loss) -> None:
        """Raise InvalidDataError naming the first cell that ``loss`` cannot describe."""
        ...


def as_storage(X: Any, absent: str = "zero") -> Storage:
    """The storage for what the user passed; ``absent`` says what sparse data leaves out."""
    from smartcpd.labels import taken_off  # labels describe storages
    from smartcpd.storage.dense import Dense
    from smartcpd.storage.sparse import SparseTensor

    X, _ = taken_off(X)
    if isinstance(X, Dense):
        return X
    if isinstance(X, SparseTensor) or _is_sparse(X):
        return SparseTensor.of(X, absent)
    if absent != "zero":
        raise IncompatibleError(
            f"absent={absent!r} is about cells that sparse data does not store; X is dense "
            f"({type(X).__name__}). Pass a SparseTensor of the observed cells."
        )
    return Dense.of(X)


def _is_sparse(X: Any) -> bool:
    """SciPy's sparse arrays, pydata's, and pyttb's sptensor, none of which need be installed."""
    module = type(X).__module__.split(".")[0]
    return (
        hasattr(X, "tocoo")
        or (module == "sparse" and hasattr(X, "coords"))
        or (module == "pyttb" and hasattr(X, "subs"))
    )
