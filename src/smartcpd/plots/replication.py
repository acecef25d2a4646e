"""A figure of how alike components are in halves of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smartcpd.plots.figure import BLUE, GREY, ORANGE, axes_or_new, bare

if TYPE_CHECKING:
    from smartcpd._inference.replication import Replication


def plot_replication(replication: Replication, ax: Any = None) -> Any:
    """Draw the similarity of each component in every split, and its median.

    Parameters
    ----------
    replication : Replication
        What `smartcpd.replicate` returned.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import datasets, plots, replicate
    >>> X, _ = datasets.count((16, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> found = replicate(X, 1, "poisson", halves=4, random_state=0)
    >>> plots.plot_replication(found).get_xlabel()
    'component'
    """
    ax = axes_or_new(ax)
    n_splits, rank = replication.similarity.shape
    numbers = np.arange(1, rank + 1)
    # Splits stand side by side, so that equal similarities do not hide each other.
    aside = np.linspace(-0.2, 0.2, n_splits) if n_splits > 1 else np.zeros(1)
    for offset, row in zip(aside, replication.similarity, strict=True):
        ax.plot(numbers + offset, row, "o", color=GREY, markersize=3, alpha=0.6)
    found = replication.found_again()
    for colour, chosen, name in ((BLUE, found, "found again"), (ORANGE, ~found, "not found again")):
        if chosen.any():
            at = numbers[chosen]
            median = replication.median[chosen]
            ax.hlines(median, at - 0.3, at + 0.3, color=colour, linewidth=3, label=name)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlim(0.4, rank + 0.6)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("component")
    ax.set_ylabel("similarity between halves\n(bars: median)")
    ax.set_title(f"{n_splits} splits of {replication.mode} into halves", fontsize=10)
    ax.legend(frameon=False, loc="best")
    return bare(ax)
