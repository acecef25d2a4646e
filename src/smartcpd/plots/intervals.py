"""A figure of the loadings of one mode with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd._fitting.ranking import mode_number
from smartcpd.errors import InvalidParameterError
from smartcpd.plots.figure import BLUE, GREY, axes_or_new, bare, brief, room_in
from smartcpd.report.axes import spread_labels

if TYPE_CHECKING:
    from smartcpd._inference.intervals import Intervals

TOP = 12


def plot_intervals(
    intervals: Intervals, component: int = 0, mode: int | str = 0, ax: Any = None
) -> Any:
    """Draw the loadings of a component in one mode, each with its interval.

    Names are drawn as the largest twelve, under each other; rows that have an order as a line with
    a band.

    Parameters
    ----------
    intervals : Intervals
        What `CPModel.intervals` returned.
    component : int
        Its place in the model, counted from 0.
    mode : int or str
        Number or name of the mode.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, plots
    >>> model = CPModel([np.ones((4, 1)), np.full((5, 1), 2.0)], loss_function="poisson")
    >>> found = model.intervals(np.tile([1, 2, 3, 2, 2], (4, 1)))
    >>> plots.plot_intervals(found, 0, 1).get_title("right")
    'component 1, 90% intervals'
    """
    model = intervals.model
    if not isinstance(component, int | np.integer) or not 0 <= component < model.rank:
        raise InvalidParameterError(
            f"component must be one of 0 to {model.rank - 1} for {model!r}; got {component!r}."
        )
    n = mode_number(model, mode)
    named = model.named_modes[n]
    parts = (model.factors[n], intervals.lower[n], intervals.upper[n])
    value, lower, upper = (A[:, component].astype(float) for A in parts)
    # An interval without an end goes as far as the figure.
    far = np.nanmax(np.abs(np.concatenate([value, lower[np.isfinite(lower)]]))) * 3 or 1.0
    lower, upper = np.clip(lower, -far, far), np.clip(upper, -far, far)
    ax = axes_or_new(ax)
    texts = [brief(text) for text in named.text()]
    if named.kind.ordered:
        places = np.arange(value.size)
        ax.fill_between(places, lower, upper, color=BLUE, alpha=0.25, linewidth=0)
        ax.plot(places, value, color=BLUE, linewidth=1.2)
        shown = spread_labels(texts, room_in(ax))
        ax.set_xticks(shown, [texts[k] for k in shown], parse_math=False)
        ax.set_xlabel(named.name, parse_math=False)
        ax.set_ylabel("loading")
    else:
        rows = np.argsort(-np.abs(value), kind="stable")[:TOP][::-1]
        places = np.arange(rows.size)
        ax.hlines(places, lower[rows], upper[rows], color=GREY, linewidth=2.2)
        ax.plot(value[rows], places, "o", color=BLUE, markersize=4)
        ax.set_yticks(places, [texts[k] for k in rows], parse_math=False)
        ax.set_xlabel("loading")
        ax.set_ylabel(named.name, parse_math=False)
    ax.set_title(f"component {component + 1}, {intervals.level:.0%} intervals", loc="right")
    return bare(ax)
