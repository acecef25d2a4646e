"""Figures in the paper's form: every trial faint, their mean strong, names next to the lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from smartcpd._app.paper import lines
from smartcpd._app.paper.experiment import Panel
from smartcpd._app.paper.runs import Run, Runs
from smartcpd.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PINK, SKY, BLACK, GREY, OLIVE = "#CC79A7", "#56B4E9", "#000000", "#7F7F7F", "#8C7A00"
"""The colours of Okabe and Ito, which colour-blind readers can tell apart."""

FULL_WIDTH, COLUMN_WIDTH = 7.0, 3.4  # inches
TEXT = 8  # points
DPI = 200
LABEL_GAP = 0.075
"""The least gap between neighbouring names, as a share of the height of the axes."""

ERROR = "MSE of the factors"
SCALES = {"time": "Time (s)", "entries": "Entries read"}


@dataclass(frozen=True)
class Style:
    """How a solver is drawn, the same in every figure."""

    colour: str
    dash: str = "-"


STYLES = {
    lines.published("SmartCPD"): Style(RED, "--"),
    lines.tuned("SmartCPD"): Style(RED),
    lines.published("GCP-OPT"): Style(GREEN, "--"),
    lines.tuned("GCP-OPT"): Style(GREEN),
    lines.published("GGN"): Style(PINK, "--"),
    lines.tuned("GGN"): Style(PINK),
    lines.published("block MD"): Style(GREEN, "--"),
    lines.tuned("block MD"): Style(GREEN),
    lines.AUTO: Style(BLUE),
    lines.LIMIT: Style(BLACK, ":"),
    "SmartCPD, Jensen": Style(OLIVE, "--"),
    "SmartCPD, adagrad": Style(ORANGE, "--"),
    "SmartCPD, mixed": Style(RED, "--"),
    "pyttb L-BFGS-B": Style(GREY, "--"),
    "pyttb Adam": Style(BLACK, "--"),
    "pyttb CP-APR": Style(GREY, "-."),
    "GenTen": Style(OLIVE, "-."),
    "TensorLy": Style(SKY, "--"),
}
"""Broken lines are the solvers as published, whole ones those tuned."""
OTHERS = (
    Style(RED),
    Style(BLUE),
    Style(GREEN, "--"),
    Style(ORANGE),
    Style(PINK, "--"),
    Style(SKY, "-."),
    Style(BLACK, "-."),
    Style(OLIVE),
    Style(GREY, "--"),
)


def style_of(solver: str, position: int) -> Style:
    return STYLES.get(solver, OTHERS[position % len(OTHERS)])


def require_matplotlib() -> None:
    """Raise an error before anything runs if nothing could be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "Drawing the paper's figures") from None


def blank(
    n_axes: int, width: float = FULL_WIDTH, height: float = 2.7, rows: int = 1, **grid: Any
) -> Figure:
    """Return a figure with axes in rows of equal length."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    for ax in np.ravel(figure.subplots(rows, n_axes // rows, **grid)):
        ax.tick_params(labelsize=TEXT, which="both")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, which="major", lw=0.4, color="#DDDDDD")
        ax.set_axisbelow(True)
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
            text.set_fontsize(TEXT)
    return figure


def save(figure: Figure, path: Path) -> list[Path]:
    """Save a figure as PNG and as SVG, whose text stays text."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        for file in files:
            figure.savefig(file, dpi=DPI)
    return files


def mean_curve(runs: Sequence[Run], scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean error over trials; a trial that has ended keeps its result.

    Between the moments at which a solver was looked at, lines are straight on the axes drawn.
    """
    low = max(_first_positive(getattr(run, scale)[np.isfinite(run.mse)]) for run in runs)
    high = max(getattr(run, scale)[-1] for run in runs)
    if not high > low:
        return np.array([high]), np.array([_mean_error(runs)])
    grid = np.geomspace(low, high, 200)
    curves = []
    for run in runs:
        x = getattr(run, scale)
        known = (x > 0) & np.isfinite(run.mse)
        curves.append(np.interp(np.log(grid), np.log(x[known]), np.log(run.mse[known])))
    return grid, np.exp(curves).mean(axis=0)


def _first_positive(values: np.ndarray) -> float:
    """Return where a line begins on a logarithmic axis, which has no zero."""
    return float(next(iter(values[values > 0]), 1e-4))


def _mean_error(runs: Sequence[Run]) -> float:
    """Return the mean over trials of the error in the end."""
    return float(np.mean([run.final("mse") for run in runs]))


def draw_runs(
    ax: Axes,
    runs: Runs,
    panel: Panel,
    *,
    scale: str = "time",
    labels: bool = True,
    aim: float | None = None,
) -> None:
    """Draw the error of every solver of a panel against time or entries, its name at the end of
    its line.
    """
    if aim is not None:
        ax.axhline(aim, color=GREY, lw=0.8, zorder=1)
    ends = []
    for position, contender in enumerate(panel.contenders):
        solver = contender.name
        found = [run for run in runs.of(panel.name, solver) if np.isfinite(run.mse).any()]
        if not found:
            continue
        style, level = style_of(solver, position), _mean_error(found)
        if contender.reference:
            end = math.nan
            ax.axhline(level, color=style.colour, ls=style.dash, lw=1.0)
        else:
            end = max(getattr(run, scale)[-1] for run in found)
            _draw_solver(ax, found, scale, style)
        ends.append((end, level, solver, style.colour))
    ax.set(xscale="log", yscale="log", xlabel=SCALES[scale], ylabel=ERROR)
    _keep_sight(ax, runs, panel.name, scale)
    label_ticks(ax.xaxis, ax.get_xlim())
    label_ticks(ax.yaxis, ax.get_ylim())
    if labels:
        label_ends(ax, ends)


def _draw_solver(ax: Axes, runs: Sequence[Run], scale: str, style: Style) -> None:
    """Draw the runs of a solver and their mean, if it has a place on the axes: peers do not tell
    how many entries they sampled.
    """
    found = [run for run in runs if np.isfinite(getattr(run, scale)[-1])]
    if not found:
        return
    for run in found:
        ax.plot(getattr(run, scale), run.mse, color=style.colour, lw=0.6, alpha=0.3)
    x, y = mean_curve(found, scale)
    marker = "o" if x.size == 1 else None
    ax.plot(x, y, color=style.colour, ls=style.dash, lw=1.8, marker=marker)


def label_ticks(axis: Axis, limits: tuple[float, float]) -> None:
    """Label powers of ten on a logarithmic axis; 2 and 5 as well where there are few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = np.log10(limits)
    if np.floor(high) - np.ceil(low) >= 1:
        axis.set_minor_formatter(NullFormatter())
        return
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    for set_formatter in (axis.set_major_formatter, axis.set_minor_formatter):
        set_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def _keep_sight(ax: Axes, runs: Runs, panel: str, scale: str) -> None:
    """Limit the axis to the moments from the first result of any solver to the last."""
    every = [getattr(run, scale) for run in runs.of(panel)]
    found = [values for values in every if np.isfinite(values[-1])]
    if found:
        ax.set_xlim(0.8 * min(map(_first_positive, found)), 1.1 * max(v[-1] for v in found))


def label_ends(ax: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Write names to the right of the axes at the height of their lines, moved apart where they
    meet.
    """
    if not ends:
        return
    to_axes = ax.transData + ax.transAxes.inverted()
    left = ax.get_xlim()[1]
    heights = [float(to_axes.transform((left, y))[1]) for _, y, _, _ in ends]
    order = np.argsort(heights)
    placed = spread([heights[k] for k in order], LABEL_GAP)
    for k, height in zip(order, placed, strict=True):
        x, y, name, colour = ends[k]
        ax.annotate(
            name,
            xy=(1.0, heights[k]) if np.isnan(x) else (x, y),
            xycoords="axes fraction" if np.isnan(x) else "data",
            xytext=(1.04, height),
            textcoords="axes fraction",
            fontsize=TEXT,
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 0.5,
                "alpha": 0.6,
                "shrinkB": 0,
                # The line starts at the beginning of the words, not across them.
                "relpos": (0, 0.5),
            },
        )


def spread(heights: Sequence[float], gap: float) -> np.ndarray:
    """Move sorted heights apart to at least ``gap``, each as little as possible, within 0 to 1."""
    n = len(heights)
    offsets = gap * np.arange(n)
    wanted = np.clip(np.asarray(heights), 0.0, 1.0) - offsets
    pooled = isotonic_regression(wanted).x
    return np.clip(pooled, 0.0, max(0.0, 1.0 - gap * (n - 1))) + offsets
