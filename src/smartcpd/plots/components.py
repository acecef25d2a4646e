"""Figures of the components of a model: one, all of them, and their shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._fitting.model import CPModel
from smartcpd._fitting.shares import readable
from smartcpd.errors import InvalidParameterError
from smartcpd.plots.factors import draw_column
from smartcpd.plots.figure import BLUE, GREY, axes_or_new, bare, pyplot
from smartcpd.report.text import percent

WIDTH, HEIGHT = 3.6, 2.3


def plot_component(
    model: CPModel, component: int, mode: int | str | None = None, ax: Any = None
) -> Any:
    """Draw a component, each mode as the picture that suits it.

    Dates are a line, hours and weekdays a strip, names bars of the ten largest, numbers columns or
    a line. Columns of nonnegative models are scaled to sum to 1 (a line shows multiples of its
    mean), others to a largest entry of 1.

    Parameters
    ----------
    model : CPModel
        The model.
    component : int
        Its place in the model, counted from 0.
    mode : int or str, optional
        Number or name of a mode; by default all are drawn, side by side.
    ax : Axes, or an array of one Axes a mode
        By default those of a new figure.

    Returns
    -------
    Axes, or ndarray of Axes if all modes are drawn

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, plots
    >>> model = CPModel([np.ones((2, 1)), np.ones((3, 1))])
    >>> plots.plot_component(model, 0).shape
    (2,)
    """
    if not isinstance(component, int | np.integer) or not 0 <= component < model.rank:
        raise InvalidParameterError(
            f"component must be one of 0 to {model.rank - 1} for {model!r}; got {component!r}."
        )
    shown = readable(model)
    r = int(np.flatnonzero(shown.order == component)[0])
    modes = model.named_modes
    if mode is None:
        axes = _grid(ax, 1, model.order)
        for n in range(model.order):
            draw_column(axes[0, n], modes[n], shown.model.factors[n][:, r], shown.signed)
            _titled(axes[0, n], modes[n].name)
        axes[0, 0].figure.suptitle(_name(component, float(shown.shares[r]), shown.share_of))
        return axes[0]
    n = _mode_number(model, mode)
    ax = draw_column(axes_or_new(ax), modes[n], shown.model.factors[n][:, r], shown.signed)
    name = _name(component, float(shown.shares[r]), shown.share_of)
    ax.set_title(f"{modes[n].name} of {name}", parse_math=False)
    return ax


def plot_model(model: CPModel, n_components: int | None = None, axes: Any = None) -> Any:
    """Draw the components as rows and the modes as columns of a grid, largest component first.

    Parameters
    ----------
    model : CPModel
        The model.
    n_components : int, optional
        How many; all by default.
    axes : (n_components x order) array of Axes, optional
        By default those of a new figure.

    Returns
    -------
    ndarray of Axes, n_components x order

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, plots
    >>> model = CPModel([np.ones((2, 3)), np.ones((3, 3))])
    >>> plots.plot_model(model, n_components=1).shape
    (1, 2)
    """
    count = model.rank if n_components is None else n_components
    if not isinstance(count, int | np.integer) or not 1 <= count <= model.rank:
        raise InvalidParameterError(
            f"n_components must be one of 1 to {model.rank} for {model!r}; got {n_components!r}."
        )
    shown = readable(model)
    grid = _grid(axes, int(count), model.order)
    for r in range(int(count)):
        for n, mode in enumerate(model.named_modes):
            draw_column(grid[r, n], mode, shown.model.factors[n][:, r], shown.signed)
            _titled(grid[r, n], mode.name if r == 0 else "")
        label = f"component {int(shown.order[r]) + 1}\n{percent(float(shown.shares[r]))}"
        grid[r, 0].annotate(
            label,
            (0.0, 0.5),
            xycoords="axes fraction",
            xytext=(-58, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontweight="bold",
        )
    return grid


def plot_scree(model: CPModel, ax: Any = None) -> Any:
    """Draw the shares of the components, largest first, and what they add up to.

    Parameters
    ----------
    model : CPModel
        The model.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import CPModel, plots
    >>> model = CPModel([np.ones((2, 3)), np.ones((3, 3))])
    >>> plots.plot_scree(model).get_ylabel()
    '% of the total'
    """
    shown = readable(model)
    ax = axes_or_new(ax)
    places = np.arange(model.rank)
    ax.bar(places, 100 * shown.shares, color=BLUE, width=0.75, label="share")
    total = 100 * np.cumsum(shown.shares)
    ax.plot(places, total, color=GREY, marker="o", markersize=3.5, label="together")
    every = max(1, model.rank // 20)
    ax.set_xticks(places[::every], [str(k + 1) for k in shown.order[::every]])
    ax.set_xlabel("component")
    ax.set_ylabel(f"% of the {shown.share_of}")
    ax.set_ylim(0, 104)
    ax.legend(frameon=False, loc="center right")
    return bare(ax)


def _grid(axes: Any, n_rows: int, n_columns: int) -> np.ndarray:
    """Return axes as a table: those given, or those of a new figure."""
    if axes is None:
        size = (WIDTH * n_columns + 1.2, HEIGHT * n_rows + 0.4)
        figure = pyplot().figure(figsize=size, layout="constrained")
        return figure.subplots(n_rows, n_columns, squeeze=False)
    given = np.asarray(axes, dtype=object)
    if given.size != n_rows * n_columns:
        raise InvalidParameterError(
            f"This needs {n_rows * n_columns} axes, {n_rows} x {n_columns}; got {given.size}."
        )
    return given.reshape(n_rows, n_columns)


def _titled(ax: Any, name: str) -> None:
    """Put the name of the mode over the axes instead of under them, where a unit may stay."""
    if ax.get_xlabel() not in ("share", "entry"):
        ax.set_xlabel("")
    if name:
        ax.set_title(name, parse_math=False)


def _mode_number(model: CPModel, mode: int | str) -> int:
    names = [m.name for m in model.named_modes]
    if isinstance(mode, str) and mode in names:
        return names.index(mode)
    if isinstance(mode, int | np.integer) and 0 <= mode < model.order:
        return int(mode)
    raise InvalidParameterError(
        f"mode must be a number from 0 to {model.order - 1} or one of "
        f"{', '.join(map(repr, names))}; got {mode!r}."
    )


def _name(component: int, share: float, share_of: str) -> str:
    return f"component {component + 1}: {percent(share)} of the {share_of}"
