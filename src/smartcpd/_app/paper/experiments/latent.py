"""What was found in real data: the components of a fit, with the names of days and places."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from smartcpd._app.paper import figures
from smartcpd._estimator import SmartCPD
from smartcpd.datasets import RealData
from smartcpd.plots import plot_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 5
"""Number of components that are drawn, the largest first."""
ROW_HEIGHT, COLUMN_WIDTH = 1.75, 3.1  # inches


def draw_components(data: RealData, rank: int, loss: str) -> Figure:
    """Draw the largest components of a fit by this package's default, a row each."""
    from matplotlib.figure import Figure

    model = SmartCPD(rank, loss, random_state=0, progress=False, n_threads=1).fit(data).model_
    rows, columns = min(SHOWN, rank), model.order
    size = (COLUMN_WIDTH * columns + 1.0, ROW_HEIGHT * rows + 0.5)
    figure = Figure(figsize=size, dpi=figures.DPI, layout="constrained")
    plot_model(model, rows, axes=figure.subplots(rows, columns, squeeze=False))
    for ax in figure.axes:
        ax.tick_params(labelsize=figures.TEXT)
    share = f"{rows} of {rank} components" if rows < rank else f"{rank} components"
    loss_then = model.loss(data.tensor)
    title = f"{data.source[0].upper()}{data.source[1:]}: {share}, mean loss {loss_then:.4g}"
    figure.suptitle(textwrap.fill(title, int(11 * size[0])))
    return figure
