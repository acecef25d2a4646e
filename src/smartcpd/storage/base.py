"""What a storage is: data the compiled loops can read fibers from."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

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

    def handle(self) -> np.ndarray:
        """Addresses and strides, as integers, that ``gather_block`` reads the data by.

        The storage must stay alive while compiled code uses the handle.
        """
        ...

    def gather_block(self, dtype: str) -> Block:
        """The compiled function that fills an array with rows of chosen fibers."""
        ...

    def pass_mode(self) -> int:
        """The mode along which reading every fiber is cheapest."""
        ...

    def mean(self) -> float:
        """The mean over all cells."""
        ...

    def mean_square(self) -> float:
        """The mean of the squares of all cells."""
        ...

    def check(self, loss: Loss) -> None:
        """Raise InvalidDataError naming the first cell that ``loss`` cannot describe."""
        ...


def as_storage(X: Any) -> Storage:
    """The storage for what the user passed."""
    from smartcpd.storage.dense import Dense

    return X if isinstance(X, Dense) else Dense.of(X)
