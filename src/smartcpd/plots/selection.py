"""A figure of how well ranks and losses predict held-out cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smartcpd.plots.figure import DASHES, PHASES, axes_or_new, bare, legend_above

if TYPE_CHECKING:
    from smartcpd._inference.selection import Selection


def plot_selection(selection: Selection, ax: Any = None) -> Any:
    """Draw how far each rank is behind the best, with standard errors; a line a loss.

    The scale is linear near the best and logarithmic further off, so that both the first ranks and
    the last decision can be seen.

    Parameters
    ----------
    selection : Selection
        What `smartcpd.select` returned.
    ax : Axes, optional
        By default that of a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from smartcpd import datasets, plots, select
    >>> X, _ = datasets.count((10, 9, 8), rank=1, a_max=1.0, random_state=0)
    >>> found = select(X, [1, 2], "poisson", cv=2, max_epochs=10, random_state=0)
    >>> plots.plot_selection(found).get_xlabel()
    'rank'
    """
    ax = axes_or_new(ax)
    rows = selection.rows
    errors = sorted(row.behind_error for row in rows if row.behind_error > 0)
    for number, loss in enumerate(dict.fromkeys(row.loss for row in rows)):
        own = [row for row in rows if row.loss == loss]
        style = number % len(PHASES)
        ax.errorbar(
            [row.rank for row in own],
            [row.behind for row in own],
            [row.behind_error for row in own],
            color=PHASES[style],
            linestyle=DASHES[style],
            marker="o",
            markersize=4,
            capsize=2,
            label=loss.replace("$", r"\$"),
        )
    chosen = next(row for row in rows if row.chosen)
    ax.plot(
        chosen.rank,
        chosen.behind,
        "o",
        markersize=12,
        markerfacecolor="none",
        markeredgecolor="black",
        label=f"chosen: rank {chosen.rank}",
    )
    if errors:
        ax.set_yscale("symlog", linthresh=4.0 * errors[len(errors) // 4])
    ax.invert_yaxis()
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("rank")
    ax.set_ylabel("behind the best, a held-out cell\n(better is up)")
    legend_above(ax)
    return bare(ax)
