"""Models to and from other libraries."""

from __future__ import annotations

import importlib
from typing import Any

from smartcpd.errors import InvalidParameterError, MissingExtraError
from smartcpd.losses import Loss
from smartcpd.model import CPModel


def to_tensorly(model: CPModel) -> Any:
    """A ``CPTensor`` in TensorLy's current backend."""
    tl = _require("tensorly", "Converting a model to TensorLy")
    factors = [tl.tensor(A) for A in model.factors]
    return tl.cp_tensor.CPTensor((tl.tensor(model.weights), factors))


def from_tensorly(cp: Any, loss_function: Loss | str | None = None) -> CPModel:
    """A model from a ``CPTensor`` or a pair (weights, factors)."""
    tl = _require("tensorly", "Converting a model from TensorLy")
    try:
        weights, factors = cp
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"Expected a TensorLy CPTensor or (weights, factors); got {type(cp).__name__}."
        ) from None
    scales = None if weights is None else tl.to_numpy(weights)
    return CPModel([tl.to_numpy(A) for A in factors], scales, loss_function)


def to_pyttb(model: CPModel) -> Any:
    """A ``ktensor``, which is always float64."""
    ttb = _require("pyttb", "Converting a model to pyttb")
    return ttb.ktensor([A.astype(float) for A in model.factors], model.weights.astype(float))


def from_pyttb(ktensor: Any, loss_function: Loss | str | None = None) -> CPModel:
    """A model from a ``ktensor``."""
    ttb = _require("pyttb", "Converting a model from pyttb")
    if not isinstance(ktensor, ttb.ktensor):
        raise InvalidParameterError(f"Expected a pyttb.ktensor; got {type(ktensor).__name__}.")
    return CPModel(ktensor.factor_matrices, ktensor.weights, loss_function)


def _require(package: str, purpose: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingExtraError(package, package, purpose) from None
