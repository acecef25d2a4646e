"""A figure of how loadings go with something else that is known of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd.errors import InvalidParameterError
from smartcpd.plots.figure import BLUE, GREY, bare, pyplot

if TYPE_CHECKING:
    from smartcpd._fitting.answers.relations import Relations

ACROSS = 4
"""Panels that stand side by side."""


def plot_relation(relations: Relations, column: str | None = None) -> Any:
    """Draw the loadings of every component against one column of the table.

    Numbers are drawn as points, groups as their mean loadings, with intervals where
    `CPModel.relate` was given some.

    Parameters
    ----------
    relations : Relations
        What `CPModel.relate` returned.
    column : str, optional
        By default the one with the clearest relation.

    Returns
    -------
    array of Axes

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, plots
    >>> model = CPModel([np.array([[1.0], [2.0], [3.0]]), np.ones((2, 1))])
    >>> plots.plot_relation(model.relate(0, {"age": [10, 30, 50]}))[0].get_xlabel()
    'age'
    """
    if column is None:
        column = min(relations.rows, key=lambda row: row.q).column
    if column not in relations.columns:
        raise InvalidParameterError(
            f"There is no column {column!r}; there are {', '.join(map(repr, relations.columns))}."
        )
    rank = relations.model.rank
    across = min(rank, ACROSS)
    down = -(-rank // across)
    size = (2.6 * across + 0.6, 2.2 * down + 0.4)
    figure, axes = pyplot().subplots(
        down, across, figsize=size, layout="constrained", sharex=True, squeeze=False
    )
    draw = _points if relations.columns[column].dtype.kind == "f" else _groups
    own = [row for row in relations.rows if row.column == column]
    for ax, row in zip(axes.flat, own, strict=False):
        draw(ax, relations, column, row.component)
        ax.set_title(f"component {row.component} (q = {row.q:.2g})", fontsize=9)
        bare(ax)
    for ax in axes.flat[rank:]:
        ax.remove()
    figure.suptitle(relations.model.named_modes[relations.mode].name, fontsize=10)
    return axes.flat[:rank]


def _points(ax: Any, relations: Relations, column: str, component: int) -> None:
    loadings = relations.model.factors[relations.mode][:, component - 1]
    ax.plot(relations.columns[column], loadings, "o", color=BLUE, markersize=4, alpha=0.7)
    ax.set_xlabel(column)
    ax.set_ylabel("loading")


def _groups(ax: Any, relations: Relations, column: str, component: int) -> None:
    own = [g for g in relations.groups if (g.column, g.component) == (column, component)]
    at = np.arange(len(own))
    means = np.array([g.mean for g in own])
    ends = np.array([[g.mean - g.lower, g.upper - g.mean] for g in own]).T
    if np.isfinite(ends).any():
        ax.errorbar(means, at, xerr=np.nan_to_num(ends, posinf=0.0), fmt="none", ecolor=GREY)
    ax.plot(means, at, "o", color=BLUE)
    ax.set_yticks(at, [f"{g.group} ({g.n})" for g in own])
    ax.set_ylim(len(own) - 0.5, -0.5)
    ax.set_xlabel(f"mean loading by {column}")
