"""The mean loss of a model on data."""

from __future__ import annotations

from typing import Any

from smartcpd._common import threads
from smartcpd._common.stacked import stack
from smartcpd._data.opening import as_storage
from smartcpd._fitting.model import CPModel
from smartcpd._objectives import Estimate, objective_of
from smartcpd.errors import InvalidParameterError


def mean_loss(
    X: Any, model: CPModel, absent: str = "zero", mask: Any = None, weights: Any = None
) -> Estimate:
    """Return the mean loss of a model on the observed cells of X."""
    model = model.with_exposure()
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
