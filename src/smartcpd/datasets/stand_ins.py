"""Simulated data of the size and density of real data that is not at hand.

They let an experiment run, and say nothing about the real data: each is marked as simulated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd._data.storage import SparseTensor
from smartcpd.datasets.events import events
from smartcpd.datasets.planted import Seed
from smartcpd.datasets.real import RealData

RANK = 10


def stand_in(
    what: str,
    names: Sequence[str],
    shape: Sequence[int],
    nnz: int,
    *,
    binary: bool = False,
    random_state: Seed = None,
) -> RealData:
    """Simulate a stand-in for data that is not at hand: events of rank 10 of the same size.

    Parameters
    ----------
    what : str
        The data that is replaced, for ``source``.
    names : sequence of str
        Names of the modes.
    shape : sequence of int
        Two modes or more.
    nnz : int
        About how many nonzeros.
    binary : bool
        Whether nonzeros are ones instead of counts.
    random_state : int, Generator or None
        A seed, or a generator to draw from.

    Returns
    -------
    RealData
        With ``simulated`` set.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X = datasets.stand_in("reports", ["day", "hour"], (30, 24), 200, random_state=0)
    >>> X.tensor
    SparseTensor(30x24, 189 nonzeros, 26.2 %, uint8)
    """
    tensor = events(shape, RANK, nnz, random_state=random_state).data
    # Some events share a cell, so that more are drawn in proportion.
    tensor = events(shape, RANK, round(nnz * nnz / tensor.nnz), random_state=random_state).data
    if binary:
        tensor = SparseTensor(tensor.indices, np.ones(tensor.nnz, np.uint8), tensor.shape)
    modes = [Mode.numbered(name, size) for name, size in zip(names, shape, strict=True)]
    source = f"SIMULATED stand-in for {what} (same size and density), not the real data"
    return RealData(tensor, tuple(modes), source=source, simulated=True)
