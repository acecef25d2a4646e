"""Figures of stored results, readable at the width of a column and by those who see few colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.results import Json, number

# Okabe and Ito (2008); black first, for ourselves.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
MARKERS = "os^Dv<>"
WIDTH = 6.4


def draw(figure: Json, path: Path) -> Path:
    """Write the figure as SVG, the same bytes for the same figures."""
    import matplotlib

    style = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",
        "svg.hashsalt": path.stem,
    }
    with matplotlib.rc_context(style):
        from matplotlib.figure import Figure

        canvas = Figure(layout="constrained")
        axes = canvas.subplots()
        (_bars if figure["kind"] == "Bars" else _lines)(canvas, axes, figure)
        canvas.suptitle(figure["title"], x=0.01, ha="left", fontsize=10)
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})
    return path


def _bars(canvas: Any, axes: Any, figure: Json) -> None:
    groups = figure["groups"]
    methods = list(dict.fromkeys(method for bars in groups.values() for method in bars))
    positions, names, place = [], [], 0.0
    for group, bars in groups.items():
        for method, value in bars.items():
            middle = value["median"] if isinstance(value, dict) else value
            if not isinstance(middle, int | float):
                continue
            k = methods.index(method)
            axes.barh(place, middle, 0.8, color=COLOURS[k % len(COLOURS)])
            if isinstance(value, dict):
                axes.plot([value["low"], value["high"]], [place] * 2, color="#777777", lw=1.5)
            most = value["high"] if isinstance(value, dict) else middle
            axes.annotate(
                number(middle), (most, place), (4, 0), textcoords="offset points", va="center"
            )
            positions.append(place)
            names.append(f"{group}, {method}" if len(groups) > 1 else method)
            place += 1.0
        place += 0.6
    canvas.set_size_inches(WIDTH, 0.9 + 0.24 * place)
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel(figure["unit"])


def _lines(canvas: Any, axes: Any, figure: Json) -> None:
    canvas.set_size_inches(WIDTH, 3.6)
    ends = []
    for k, (name, points) in enumerate(figure["series"].items()):
        kept = [
            (x, y) for x, y in points if isinstance(x, int | float) and isinstance(y, int | float)
        ]
        if not kept:
            continue
        xs, ys = zip(*kept, strict=True)
        colour = COLOURS[k % len(COLOURS)]
        few = len(kept) <= 12
        marker = MARKERS[k % len(MARKERS)] if few else None
        axes.plot(xs, ys, color=colour, marker=marker, markersize=4, lw=1.4)
        ends.append((xs[-1], ys[-1], name, colour))
    if "x" in figure["log"]:
        axes.set_xscale("log")
    if "y" in figure["log"]:
        axes.set_yscale("log")
    axes.set_xlabel(figure["x"])
    axes.set_ylabel(figure["y"])
    _label_ends(canvas, axes, ends)


def _label_ends(canvas: Any, axes: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Names at the right edge, as high as the lines end, moved apart where they would overlap."""
    canvas.draw_without_rendering()
    height = axes.get_window_extent().height
    placed: list[float] = []
    for x, y, name, colour in sorted(ends, key=lambda end: end[1]):
        wanted = axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1]
        level = max(wanted, placed[-1] + 14 * canvas.dpi / 72 / height) if placed else wanted
        placed.append(level)
        axes.annotate(
            name,
            (x, y),
            (1.02, level),
            textcoords="axes fraction",
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.5},
        )
