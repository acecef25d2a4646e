"""Figures of how well a model describes data: whether its predictions come true, and where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd.errors import InvalidDataError
from smartcpd.plots.figure import BLUE, GREY, ORANGE, axes_or_new, bare, room_in

if TYPE_CHECKING:
    from smartcpd.quality import Quality


def plot_calibration(quality: Quality, ax: Any = None) -> Any:
    """Draw what was observed where the model predicts about the same, with two standard errors.

    Points on the line are cells of which the model is right on average.

    Parameters
    ----------
    quality : Quality
        What `smartcpd.quality.measure` returned.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import CPModel, datasets, plots
    >>> from smartcpd.quality import measure
    >>> X, factors = datasets.count((6, 5, 4), rank=1, random_state=0)
    >>> quality = measure(CPModel(factors, loss_function="poisson"), X)
    >>> plots.plot_calibration(quality).get_xlabel()
    'predicted mean'
    """
    bins = quality.calibration
    if not bins:
        raise InvalidDataError("This quality has no calibration: the data has a single value.")
    ax = axes_or_new(ax, 4.4, 4.0)
    predicted = np.array([b.predicted for b in bins])
    observed = np.array([b.observed for b in bins])
    errors = 2 * np.array([b.error for b in bins])
    ends = np.array([min(predicted.min(), observed.min()), max(predicted.max(), observed.max())])
    ax.plot(ends, ends, color=GREY, linewidth=1, label="as predicted")
    ax.errorbar(
        predicted, observed, errors, fmt="o", color=BLUE, markersize=4, capsize=2,
        label="observed, ± 2 errors",
    )  # fmt: skip
    positive = predicted.min() > 0 and observed.min() > 0
    if positive and predicted.max() / predicted.min() > 100:
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlabel("predicted mean")
    ax.set_ylabel("observed mean")
    ax.legend(frameon=False)
    return bare(ax)


def plot_residuals(quality: Quality, ax: Any = None) -> Any:
    """Draw the cells that the model describes worst: observed over expected, the worst on top.

    Parameters
    ----------
    quality : Quality
        What `smartcpd.quality.measure` returned.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import CPModel, datasets, plots
    >>> from smartcpd.quality import measure
    >>> X, factors = datasets.count((6, 5, 4), rank=1, random_state=0)
    >>> quality = measure(CPModel(factors, loss_function="poisson"), X)
    >>> plots.plot_residuals(quality).get_xlabel()
    'residual, in standard deviations'
    """
    cells = quality.hot_cells[:12][::-1]
    if not cells:
        raise InvalidDataError("This quality names no cells: the loss has no residuals.")
    ax = axes_or_new(ax, 6.0, 0.9 + 0.28 * len(cells))
    places = np.arange(len(cells))
    residuals = np.array([cell.residual for cell in cells])
    ax.barh(places, residuals, color=np.where(residuals < 0, ORANGE, BLUE), height=0.65)
    names = [", ".join(map(str, cell.index)) for cell in cells]
    ax.set_yticks(places, names, fontsize="small")
    for place, cell in zip(places, cells, strict=True):
        ax.annotate(
            f"{cell.observed:.3g} for {cell.expected:.3g}",
            (max(cell.residual, 0.0), place),
            xytext=(4, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize="small",
        )
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    low, high = min(residuals.min(), 0.0), max(residuals.max(), 0.0)
    ax.set_xlim(1.05 * low, high + 120.0 / max(room_in(ax), 120.0) * (high - low))
    ax.set_xlabel("residual, in standard deviations")
    ax.set_ylabel("cell")
    return bare(ax)
