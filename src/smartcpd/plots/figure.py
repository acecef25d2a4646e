"""Matplotlib, imported only when something is drawn."""

from __future__ import annotations

from typing import Any

from smartcpd.errors import MissingExtraError

BLUE, ORANGE, GREY = "#2962b8", "#c0561a", "#5d6470"
PHASES = (BLUE, ORANGE, "#117a5b", "#96458b", "#8a6d00", "#4d5562")
LONGEST = 24
"""Number of letters of a label."""
DASHES = ("-", "--", ":", "-.", (0, (4, 2)), (0, (1, 2)))


def pyplot() -> Any:
    """Return the module ``matplotlib.pyplot``."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "matplotlib":
            raise
        raise MissingExtraError("matplotlib", "plot", "Drawing a model") from None
    return plt


def axes_or_new(ax: Any, width: float = 6.0, height: float = 3.6) -> Any:
    """Return the axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def brief(text: str) -> str:
    """Cut a label so that it leaves room for what it stands beside."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def room_in(ax: Any) -> float:
    """Return the width of axes in points, about."""
    return float(ax.get_position().width * ax.figure.get_figwidth() * 72)


def legend_above(ax: Any) -> None:
    """Name the lines above the axes, where nothing is drawn."""
    ax.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2,
        ncols=max(1, int(room_in(ax) // 110)), fontsize="small", handlelength=1.6,
    )  # fmt: skip


def bare(ax: Any) -> Any:
    """Remove the lines of a frame that carry no information."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
