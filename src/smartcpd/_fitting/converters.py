"""Conversion of models to and from other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._common.extras import required
from smartcpd._fitting.model import CPModel
from smartcpd.errors import InvalidParameterError
from smartcpd.losses import Loss


def to_tensorly(model: CPModel) -> Any:
    """Return a ``CPTensor`` in TensorLy's current backend."""
    tl = required("tensorly", "Converting a model to TensorLy")
    factors = [tl.tensor(A) for A in model.factors]
    return tl.cp_tensor.CPTensor((tl.tensor(model.weights), factors))


def from_tensorly(cp: Any, loss_function: Loss | str | None = None) -> CPModel:
    """Return a model from a ``CPTensor`` or a pair (weights, factors)."""
    tl = required("tensorly", "Converting a model from TensorLy")
    try:
        weights, factors = cp
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"Expected a TensorLy CPTensor or (weights, factors); got {type(cp).__name__}."
        ) from None
    scales = None if weights is None else tl.to_numpy(weights)
    return CPModel([tl.to_numpy(A) for A in factors], scales, loss_function)


def to_pyttb(model: CPModel) -> Any:
    """Return a ``ktensor``, which is always float64."""
    ttb = required("pyttb", "Converting a model to pyttb")
    return ttb.ktensor([A.astype(float) for A in model.factors], model.weights.astype(float))


def from_pyttb(ktensor: Any, loss_function: Loss | str | None = None) -> CPModel:
    """Return a model from a ``ktensor``."""
    ttb = required("pyttb", "Converting a model from pyttb")
    if not isinstance(ktensor, ttb.ktensor):
        raise InvalidParameterError(f"Expected a pyttb.ktensor; got {type(ktensor).__name__}.")
    return CPModel(ktensor.factor_matrices, ktensor.weights, loss_function)


def as_model(given: Any) -> CPModel | None:
    """Return the model that a user's start is: ours, TensorLy's or pyttb's; None if it is none."""
    if isinstance(given, CPModel):
        return given
    package = type(given).__module__.split(".")[0]
    if package == "pyttb" and hasattr(given, "factor_matrices"):
        return from_pyttb(given)
    if package == "tensorly" and hasattr(given, "factors"):
        return from_tensorly(given)
    return None


def to_polars(model: CPModel) -> Any:
    """Return a Polars DataFrame, long; see `CPModel.to_polars`."""
    pl = required("polars", "A model as a Polars DataFrame")
    columns: dict[str, list[Any]] = {"mode": [], "label": [], "component": [], "value": []}
    for mode, A in zip(model.named_modes, model.factors, strict=True):
        columns["mode"] += [mode.name] * A.size
        columns["label"] += mode.text() * model.rank
        columns["component"] += np.repeat(np.arange(1, model.rank + 1), len(mode)).tolist()
        columns["value"] += A.T.reshape(-1).tolist()
    return pl.DataFrame(columns)


def to_frame(model: CPModel) -> Any:
    """Return a pandas DataFrame, long; see `CPModel.to_frame`."""
    pd = required("pandas", "A model as a DataFrame")
    parts = []
    for mode, A in zip(model.named_modes, model.factors, strict=True):
        size = len(mode)
        parts.append(
            pd.DataFrame(
                {
                    "mode": mode.name,
                    "label": pd.Series(mode.labels.tolist() * model.rank, dtype=object),
                    "component": np.repeat(np.arange(1, model.rank + 1), size),
                    "value": A.T.reshape(-1),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def to_xarray(model: CPModel) -> Any:
    """Return an xarray Dataset; see `CPModel.to_xarray`."""
    xarray = required("xarray", "A model as an xarray Dataset")
    names = [mode.name for mode in model.named_modes]
    taken = {"component", "weights"} & set(names)
    if taken:
        raise InvalidParameterError(
            f"A mode is called {taken.pop()!r}, which a Dataset of factors needs for itself. "
            "Give the mode another name."
        )
    coords: dict[str, Any] = {mode.name: mode.labels for mode in model.named_modes}
    coords["component"] = np.arange(1, model.rank + 1)
    # A variable cannot have the name of a coordinate.
    variables: dict[str, Any] = {
        f"factor {name}": ((name, "component"), A)
        for name, A in zip(names, model.factors, strict=True)
    }
    variables["weights"] = ("component", model.weights)
    return xarray.Dataset(variables, coords, {"loss": str(model.loss_function)})
