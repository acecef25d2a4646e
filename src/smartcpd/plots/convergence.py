"""A figure of the loss during a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._problem.history import History
from smartcpd.errors import InvalidDataError
from smartcpd.plots.figure import DASHES, PHASES, axes_or_new, bare
from smartcpd.report.convergence import stretches


def plot_history(history: History, ax: Any = None) -> Any:
    """Draw how far the loss was above its best during a fit, each phase in its own colour.

    Parameters
    ----------
    history : History
        ``history_`` of a fitted `smartcpd.SmartCPD`.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import SmartCPD, datasets, plots
    >>> X, _ = datasets.count((10, 9, 8), rank=1, random_state=0)
    >>> est = SmartCPD(1, "poisson", random_state=0).fit(X)
    >>> plots.plot_history(est.history_).get_ylabel()
    'loss above its best'
    """
    if not len(history):
        raise InvalidDataError("This history has no rows, so there is nothing to draw.")
    ax = axes_or_new(ax)
    objective, time = history.objective, history["time"]
    excess = objective - np.nanmin(objective)
    positive = excess[excess > 0]
    # The best row is left out, since its logarithm would be minus infinity.
    excess = np.maximum(excess, positive.min() / 2 if positive.size else 1e-16)
    phases = [record.phase for record in history]
    for phase, start, end in stretches(phases):
        name = phases[start]
        style = phase % len(PHASES)
        part = slice(max(start - 1, 0), end)
        ax.plot(
            time[part],
            excess[part],
            color=PHASES[style],
            linestyle=DASHES[style],
            label=name.replace("$", r"\$") if phases.index(name) == start else "_",
        )
    ax.set_yscale("log")
    ax.set_xlabel("seconds")
    ax.set_ylabel("loss above its best")
    ax.legend(frameon=False)
    return bare(ax)
