"""The interface of objectives, the functions that fits minimise."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple, Protocol

import numpy as np

from smartcpd._data.storage import Storage
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd.losses import Loss

ALL_CELLS = 1 << 18
"""Number of cells that are few enough to be passed over after every epoch."""


@kept_value
class Estimate(NamedTuple):
    """A mean loss, and its standard error where it comes from a sample of the data."""

    loss: float
    error: float = 0.0


class Objective(Protocol):
    """F(A), the mean of l(x, m) over the observed cells of a storage.

    A holds the stacked factors. The methods are called within `threads.limited_to`.
    """

    @property
    def storage(self) -> Storage: ...

    def estimate(self, A: np.ndarray) -> Estimate:
        """The value at A: exact wherever that is affordable."""
        ...

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, stacked like A."""
        ...

    def watch(self, A: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], Estimate]:
        """Return a function that estimates the value cheaply: on a fixed sample where the data is
        large.

        A is where the fit begins. Two of its values differ by the factors alone.
        """
        ...

    def compile(self, A: np.ndarray) -> None:
        """Compile all that passes over factors like A need, before a clock starts."""
        ...

    def with_background(self, A: np.ndarray) -> Objective:
        """The same objective, with the quickest way to the data's zeros that is good near A."""
        ...


@singledispatch
def objective_of(storage: Storage, loss: Loss, n_threads: int = 1) -> Objective:
    """The objective of a loss over a storage; each kind of storage registers its own."""
    raise TypeError(f"{type(storage).__name__} is no storage that an objective is known for.")


@singledispatch
def scaled_gradient(objective: Objective, A: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and gradient times A, entry by entry; objectives that have it for less register so."""
    value, gradient = objective.gradient(A)
    return value, A * gradient
