"""The type of real data: a labelled tensor that says where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smartcpd._data.labels import LabelledTensor, Mode
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


def counted(rows: Sequence[np.ndarray], modes: Sequence[Mode], source: str) -> RealData:
    """Count events into a tensor of the smallest integers that hold the counts."""
    shape = tuple(len(mode) for mode in modes)
    cells, counts = np.unique(np.ravel_multi_index(tuple(rows), shape), return_counts=True)
    values = counts.astype(np.min_scalar_type(int(counts.max())))
    tensor = SparseTensor(np.unravel_index(cells, shape), values, shape)
    return RealData(tensor, tuple(modes), source=source)


def coded(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, sorted, and the place of each row's label among them."""
    names, codes = np.unique(labels, return_inverse=True)
    return names, codes.reshape(-1)
