"""The rows that a component speaks of most."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._fitting.model import CPModel
from smartcpd.errors import InvalidParameterError


def top(model: CPModel, component: int, mode: int | str, k: int = 10) -> list[tuple[Any, float]]:
    """Return the labels that a component speaks of most; see `CPModel.top`."""
    n = mode_number(model, mode)
    if not isinstance(component, int | np.integer) or not 0 <= component < model.rank:
        raise InvalidParameterError(
            f"component must be one of 0 to {model.rank - 1} for {model!r}; got {component!r}."
        )
    if not isinstance(k, int | np.integer) or k < 1:
        raise InvalidParameterError(f"k must be a whole number of at least 1; got {k!r}.")
    column = model.factors[n][:, component]
    labels = model.named_modes[n].labels
    chosen = np.argsort(-np.abs(column), kind="stable")[:k]
    return [(labels[i : i + 1].tolist()[0], float(column[i])) for i in chosen]


def mode_number(model: CPModel, mode: int | str) -> int:
    """Return the number of a mode that is given by number or by name."""
    names = [m.name for m in model.named_modes]
    if isinstance(mode, str):
        if mode not in names:
            raise InvalidParameterError(
                f"No mode is called {mode!r}; they are {', '.join(map(repr, names))}."
            )
        return names.index(mode)
    if not isinstance(mode, int | np.integer) or not 0 <= mode < model.order:
        raise InvalidParameterError(
            f"mode must be a name or one of 0 to {model.order - 1} for {model!r}; got {mode!r}."
        )
    return int(mode)
