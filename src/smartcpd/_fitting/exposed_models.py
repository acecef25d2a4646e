"""Models of rates, and the models of data that they become by their exposure."""

from __future__ import annotations

from dataclasses import replace

from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError


def with_exposure(model: CPModel) -> CPModel:
    """Return the model of the data; see `CPModel.with_exposure`."""
    if model.exposure is None:
        return model
    if not model.exposure.is_product:
        raise IncompatibleError(
            f"{model!r} was fitted with an exposure of every cell, which a model does not keep, "
            "and cannot be compared with counts. Compare rates: data = smartcpd.rates(X, "
            "exposure, loss), then model.without_exposure() with this data."
        )
    factors = model.exposure.scaled(model.factors, 1.0)
    return replace(model, factors=factors, exposure=None)


def without_exposure(model: CPModel) -> CPModel:
    """Return the model of the rates alone; see `CPModel.without_exposure`."""
    return replace(model, exposure=None)
