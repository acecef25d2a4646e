"""Figures in the paper's form: every trial faint, their mean strong, names next to the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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

MEASURES = {"mse": "MSE of the factors", "loss": "Mean loss"}
SCALES = {"time": "Time (s)", "entries": "Entries sampled"}


@dataclass(frozen=True)
class Style:
    """How a solver is drawn, the same in every figure."""

    colour: str
    dash: str = "-"


STYLES = {
    "SmartCPD": Style(RED),
    "smd, our defaults": Style(ORANGE),
    "auto (our default)": Style(BLUE),
    "GCP-OPT": Style(GREEN),
    "GGN": Style(PINK),
    "block MD": Style(GREEN),
    "limit (from the truth)": Style(BLACK, ":"),
    "SmartCPD, Jensen": Style(RED, "--"),
    "SmartCPD, adagrad": Style(ORANGE, "--"),
    "SmartCPD, mixed": Style(RED),
    "pyttb L-BFGS-B": Style(GREY, "--"),
    "pyttb Adam": Style(BLACK, "--"),
    "pyttb CP-APR": Style(GREY, "-."),
    "GenTen": Style(OLIVE, "--"),
    "TensorLy": Style(SKY, "--"),
}
OTHERS = (
    Style(RED),
    Style(BLUE),
    Style(GREEN, "--"),
    Style(ORANGE),
    Style(PINK, "--"),
    Style(SKY, "-."),
    Style(BLACK, "-."),
)


def style_of(solver: str, position: int) -> Style:
    return STYLES.get(solver, OTHERS[position % len(OTHERS)])


def require_matplotlib() -> None:
    """Raise an error before anything runs if nothing could be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "Drawing the paper's figures") from None


def blank(n_axes: int, width: float = FULL_WIDTH, height: float = 2.7, **grid: Any) -> Figure:
    """Return a figure with axes in a row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    for ax in np.ravel(figure.subplots(1, n_axes, **grid)):
        tidy(ax)
    return figure


def tidy(ax: Axes) -> None:
    ax.tick_params(labelsize=TEXT, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, which="major", lw=0.4, color="#DDDDDD")
    ax.set_axisbelow(True)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_fontsize(TEXT)


def save(figure: Figure, path: Path) -> list[Path]:
    """Save a figure as PNG and as SVG, whose text stays text."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        for file in files:
            figure.savefig(file, dpi=DPI)
    return files


def mean_curve(runs: Sequence[Run], scale: str, measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over trials; a trial that has ended keeps its result.

    Between the moments at which a solver was looked at, lines are straight on the axes drawn.
    """
    starts = [_positive(_known(run, measure), scale)[0] for run in runs]
    ends = [getattr(run, scale)[-1] for run in runs]
    low, high = max(starts), max(ends)
    if not high > low:
        return np.array([high]), np.array([np.mean([run.final(measure) for run in runs])])
    grid = np.geomspace(low, high, 200)
    curves = []
    for run in runs:
        x, y = getattr(run, scale), getattr(run, measure)
        known = (x > 0) & np.isfinite(y)
        bent = np.log if measure == "mse" else np.asarray
        values = np.interp(np.log(grid), np.log(x[known]), bent(y[known]))
        curves.append(np.exp(values) if measure == "mse" else values)
    return grid, np.mean(curves, axis=0)


def _known(run: Run, measure: str) -> Run:
    """Return the moments of a run at which the measure is known."""
    known = np.isfinite(getattr(run, measure))
    return Run(*run[:3], *(column[known] for column in run[3:]))


def _positive(run: Run, scale: str) -> np.ndarray:
    """Return where a run is on a logarithmic axis, which has no zero."""
    values = getattr(run, scale)
    found = values[values > 0]
    return found if found.size else np.array([1e-4])


def draw_runs(
    ax: Axes,
    runs: Runs,
    panel: str,
    solvers: Sequence[str],
    *,
    scale: str = "time",
    measure: str = "mse",
    labels: bool = True,
    log: bool = True,
    aim: float | None = None,
) -> None:
    """Draw every solver of a panel against time or entries, its name at the end of its line."""
    if aim is not None:
        ax.axhline(aim, color=GREY, lw=0.8, zorder=1)
    for position, solver in enumerate(solvers):
        found = _drawable(runs, panel, solver, scale, measure)
        if not found:
            continue
        style = style_of(solver, position)
        if solver.startswith("limit"):
            level = float(np.mean([run.final(measure) for run in found]))
            ax.axhline(level, color=style.colour, ls=style.dash, lw=1.0)
            continue
        for run in found:
            ax.plot(
                getattr(run, scale), getattr(run, measure), color=style.colour, lw=0.6, alpha=0.3
            )
        x, y = mean_curve(found, scale, measure)
        ax.plot(
            x, y, color=style.colour, ls=style.dash, lw=1.8, marker="o" if x.size == 1 else None
        )
    ax.set_xscale("log")
    if log:
        ax.set_yscale("log")
    ax.set_xlabel(SCALES[scale], fontsize=TEXT)
    ax.set_ylabel(MEASURES[measure], fontsize=TEXT)
    _keep_sight(ax, runs, panel, scale)
    label_ticks(ax.xaxis, ax.get_xlim())
    if log:
        label_ticks(ax.yaxis, ax.get_ylim())
    if labels:
        label_means(ax, runs, panel, solvers, scale=scale, measure=measure)


def label_ticks(axis: Axis, limits: tuple[float, float]) -> None:
    """Label powers of ten on a logarithmic axis; 2 and 5 as well where there are few of them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = np.log10(limits)
    if np.floor(high) - np.ceil(low) >= 1:
        axis.set_minor_formatter(NullFormatter())
        return
    axis.set_minor_locator(LogLocator(subs=(2.0, 3.0, 5.0)))
    for set_formatter in (axis.set_major_formatter, axis.set_minor_formatter):
        set_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def label_means(
    ax: Axes,
    runs: Runs,
    panel: str,
    solvers: Sequence[str],
    *,
    scale: str = "time",
    measure: str = "mse",
) -> None:
    """Write the name of every solver next to the end of its mean; the limits of the axes must be
    set.
    """
    ends = []
    for position, solver in enumerate(solvers):
        found = _drawable(runs, panel, solver, "time", measure)
        if not found:
            continue
        level = float(np.mean([run.final(measure) for run in found]))
        x = (
            float("nan")
            if solver.startswith("limit")
            else max(getattr(r, scale)[-1] for r in found)
        )
        ends.append((x, level, solver, style_of(solver, position).colour))
    label_ends(ax, ends)


def _drawable(runs: Runs, panel: str, solver: str, scale: str, measure: str) -> list[Run]:
    """Return the runs that have a place on the axes: peers do not tell how many entries they
    sampled.
    """
    return [
        run
        for run in runs.of(panel, solver)
        if np.isfinite(getattr(run, measure)).any() and np.isfinite(getattr(run, scale)[-1])
    ]


def _keep_sight(ax: Axes, runs: Runs, panel: str, scale: str) -> None:
    """Limit the axis to the moments from the first result of any solver to the last."""
    every = [run for solver in runs.solvers(panel) for run in runs.of(panel, solver)]
    found = [run for run in every if np.isfinite(getattr(run, scale)[-1])]
    if not found:
        return
    ax.set_xlim(
        0.8 * min(_positive(run, scale)[0] for run in found),
        1.1 * max(getattr(run, scale)[-1] for run in found),
    )


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
    if n == 0:
        return np.array([])
    offsets = gap * np.arange(n)
    wanted = np.clip(np.asarray(heights), 0.0, 1.0) - offsets
    # Isotonic regression by pooling neighbours that are out of order.
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, m), (b, k) = blocks[-2:]
            blocks[-2:] = [[(a * m + b * k) / (m + k), m + k]]
    pooled = np.concatenate([np.full(int(k), value) for value, k in blocks])
    return np.clip(pooled, 0.0, max(0.0, 1.0 - gap * (n - 1))) + offsets
