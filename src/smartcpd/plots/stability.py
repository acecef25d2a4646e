"""A figure of how surely the components of a fit were found again by other starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd._fitting.consensus import Consensus
from smartcpd.plots.figure import BLUE, GREY, axes_or_new, bare


def plot_consensus(consensus: Consensus, ax: Any = None) -> Any:
    """Draw the stability of each component, and in how many starts it was found.

    Components that other starts found and the model lacks stand to the right, in grey.

    Parameters
    ----------
    consensus : Consensus
        ``consensus_`` of a fitted `smartcpd.SmartCPD`.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import SmartCPD, datasets, plots
    >>> X, _ = datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> est = SmartCPD(1, "poisson", n_init=2, consensus=True, random_state=0).fit(X)
    >>> plots.plot_consensus(est.consensus_).get_ylabel()
    'stability'
    """
    ax = axes_or_new(ax)
    shown = consensus.components[: consensus.rank + 12]
    places = np.arange(len(shown))
    own = places < consensus.rank
    heights = np.array([c.stability for c in shown])
    ax.bar(places, heights, width=0.7, color=np.where(own, BLUE, GREY))
    room = len(shown) <= 16
    for place, component in zip(places if room else [], shown, strict=False):
        ax.annotate(
            f"{component.found}/{consensus.n_starts}",
            (place, component.stability),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize="small",
        )
    every = max(1, len(shown) // 20)
    names = [str(k + 1) if k < consensus.rank else "–" for k in places]
    ax.set_xticks(places[::every], names[::every])
    ax.set_xlabel("component" if own.all() else "component (– found by other starts only)")
    ax.set_ylabel("stability")
    ax.set_ylim(0, 1.12)
    ax.set_yticks([0, 0.5, 1])
    return bare(ax)
