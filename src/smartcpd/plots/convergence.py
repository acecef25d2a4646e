"""A figure of the loss during a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._problem.history import History
from smartcpd.errors import InvalidDataError
from smartcpd.plots.figure import DASHES, PHASES, axes_or_new, bare, legend_above
from smartcpd.report.convergence import stretches

JUMP = 10.0
"""A phase whose first loss is further off than this factor is another story."""


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
    phases = [record.phase for record in history]
    parts = list(stretches(phases))
    # Models with more components than the last phase has may be better than what is returned.
    excess = objective - np.nanmin(objective[parts[-1][1] :])
    # The best row is left out, since its logarithm would be minus infinity.
    excess[~(excess > 0)] = np.nan if (excess > 0).any() else 1e-16
    for phase, start, end in parts:
        name = phases[start]
        style = phase % len(PHASES)
        part = slice(start - joined(excess, start), end)
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
    legend_above(ax)
    return bare(ax)


def joined(excess: np.ndarray, start: int) -> bool:
    """Whether a phase goes on about where the one before it ended, so that a line joins them."""
    if start == 0:
        return False
    before, after = excess[start - 1], excess[start]
    return bool(before / JUMP < after < before * JUMP)
