"""What fits know of the function they minimise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.storage import Dense, SparseTensor, Storage, as_storage
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss

if TYPE_CHECKING:
    from smartcpd._fitting.model import CPModel

ALL_CELLS = 1 << 18
"""What a pass over is cheap enough to be made after every epoch."""


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
        """A cheap look at the value: on a fixed sample where the data is large.

        A is where the fit begins. Two looks differ by the factors alone.
        """
        ...


def objective_of(storage: Storage, loss: Loss, n_threads: int = 1) -> Objective:
    """The objective for a kind of storage."""
    from smartcpd._data.tiled import Blocks
    from smartcpd._objectives.blocks import BlocksObjective
    from smartcpd._objectives.dense import DenseObjective
    from smartcpd._objectives.parts import PartsObjective
    from smartcpd._objectives.sparse import SparseObjective
    from smartcpd.partitions.tensor import PartitionedTensor

    if isinstance(storage, SparseTensor):
        return SparseObjective(storage, loss, n_threads)
    if isinstance(storage, Blocks):
        return BlocksObjective(storage, loss, n_threads)
    if isinstance(storage, PartitionedTensor):
        return PartsObjective(storage, loss, n_threads)
    assert isinstance(storage, Dense)
    return DenseObjective(storage, loss, n_threads)


def mean_loss(
    X: Any, model: CPModel, absent: str = "zero", mask: Any = None, weights: Any = None
) -> Estimate:
    """The mean loss of a model on the observed cells of X."""
    if model.loss_function is None:
        raise InvalidParameterError(
            "This model has no loss. Load it with CPModel.load(path, loss=...)."
        )
    storage = as_storage(X, absent, mask, weights)
    if storage.shape != model.shape:
        raise InvalidParameterError(
            f"X has shape {storage.shape}, the model {model.shape}. They must be the same."
        )
    storage.check(model.loss_function)
    n_threads = threads.resolve(None)
    with threads.limited_to(n_threads):
        objective = objective_of(storage, model.loss_function, n_threads)
        return objective.estimate(stack(model.distribute().factors))
