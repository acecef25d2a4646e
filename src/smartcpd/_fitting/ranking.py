"""The rows that a component speaks of most."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._common.parameters import check_integer
from smartcpd._data.labels import Mode
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import readable
from smartcpd.errors import InvalidParameterError


def top(
    model: CPModel, component: int | None = None, mode: int | str | None = None, k: int = 10
) -> Any:
    """Return the labels that components speak of most; see `CPModel.top`."""
    check_integer("k", k, at_least=1)
    whole = isinstance(component, int | np.integer)
    if component is not None and not (whole and 0 <= component < model.rank):
        raise InvalidParameterError(
            f"component must be one of 0 to {model.rank - 1} for {model!r}; got {component!r}."
        )
    shown = readable(model)
    modes = model.named_modes
    chosen = range(model.order) if mode is None else [mode_number(model, mode)]

    def rows_of(place: int) -> Any:
        r = int(np.flatnonzero(shown.order == place)[0])
        lists = {modes[n].name: largest(modes[n], shown.model.factors[n][:, r], k) for n in chosen}
        return lists if mode is None else next(iter(lists.values()))

    if component is not None:
        return rows_of(int(component))
    shares = shown.shares[np.argsort(shown.order)]
    return [
        {"component": r + 1, "share": float(share), "top": rows_of(r)}
        for r, share in enumerate(shares)
    ]


def largest(mode: Mode, column: np.ndarray, k: int) -> list[tuple[Any, float]]:
    """Return the labels of the largest entries of a column, with those."""
    chosen = np.argsort(-np.abs(column), kind="stable")[:k]
    return [(mode.labels[i : i + 1].tolist()[0], float(column[i])) for i in chosen]


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
