"""A figure of two models side by side: which components are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._common.factors import best_pairs, mode_cosines
from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError
from smartcpd.plots.figure import axes_or_new

FEW = 14


def plot_comparison(model: CPModel, other: CPModel, ax: Any = None) -> Any:
    """Draw how alike the components of two models are; partners stand on the diagonal.

    Two components are as alike as the product of their cosines over the modes: 1 if they differ in
    size only. They may be of different numbers.

    Parameters
    ----------
    model, other : CPModel
        Models of one shape.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import CPModel, datasets, plots
    >>> _, factors = datasets.count((6, 5, 4), rank=3, random_state=0)
    >>> model = CPModel(factors)
    >>> plots.plot_comparison(model, model[[2, 0, 1]]).get_xlabel()
    'component of the other model'
    """
    if model.shape != other.shape:
        raise IncompatibleError(
            f"Only models of one shape can be compared; got {model!r} and {other!r}."
        )
    alike = np.abs(mode_cosines(model.factors, other.factors).prod(axis=0))
    paired, partners = (found.tolist() for found in best_pairs(alike))
    rows = paired + [r for r in range(model.rank) if r not in paired]
    columns = partners + [c for c in range(other.rank) if c not in partners]
    size = 1.6 + 0.34 * max(model.rank, other.rank)
    ax = axes_or_new(ax, min(size + 0.9, 8.0), min(size, 7.0))
    shown = alike[np.ix_(rows, columns)]
    image = ax.imshow(shown, vmin=0, vmax=1, cmap="Blues", aspect="equal")
    if max(shown.shape) <= FEW:
        for (i, j), value in np.ndenumerate(shown):
            if value >= 0.1:
                colour = "white" if value > 0.6 else "black"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=7)
    _numbered(ax.set_xticks, columns)
    _numbered(ax.set_yticks, rows)
    ax.set_xlabel("component of the other model")
    ax.set_ylabel("component")
    ax.figure.colorbar(image, ax=ax, label="similarity", shrink=0.8)
    return ax


def _numbered(set_ticks: Any, components: list[int]) -> None:
    """Number rows or columns, every one or every few."""
    every = max(1, len(components) // 20)
    places = range(0, len(components), every)
    set_ticks(list(places), [str(components[k] + 1) for k in places])
