"""The type of real data: a labelled tensor that says where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.labelled import LabelledTensor
from smartcpd._data.labels import Kind, Mode
from smartcpd._data.storage import SparseTensor


@dataclass(frozen=True, repr=False)
class RealData(LabelledTensor):
    """A labelled sparse tensor and its origin.

    Attributes
    ----------
    source : str
        Which data this is, in words.
    simulated : bool
        Whether it is a stand-in that was drawn at random, not data that anybody observed.

    Examples
    --------
    >>> from smartcpd import datasets
    >>> X = datasets.stand_in("reports", ["day", "hour"], (30, 24), 200, random_state=0)
    >>> X.simulated
    True
    """

    tensor: SparseTensor
    source: str = ""
    simulated: bool = False

    def __repr__(self) -> str:
        names = " x ".join(f"{mode.name} {len(mode)}" for mode in self.modes)
        return f"RealData({names}; {self.tensor!r}; {self.source})"


def counted(
    columns: Sequence[tuple[str, np.ndarray, Kind]],
    source: str,
    counts: np.ndarray | None = None,
) -> RealData:
    """Count the rows of a table into a tensor of the smallest integers that hold the counts.

    Every column, given by name, labels and kind, becomes a mode of its distinct labels, sorted.
    ``counts`` says how often each row happened, once by default.
    """
    modes, places = [], []
    for name, labels, kind in columns:
        distinct, place = np.unique(labels, return_inverse=True)
        modes.append(Mode(name, distinct, kind))
        places.append(place)
    shape = tuple(map(len, modes))
    cells, cell = np.unique(np.ravel_multi_index(tuple(places), shape), return_inverse=True)
    sums = np.bincount(cell, counts).astype(np.int64)
    values = sums.astype(np.min_scalar_type(int(sums.max())))
    tensor = SparseTensor(np.unravel_index(cells, shape), values, shape)
    return RealData(tensor, tuple(modes), source=source)
