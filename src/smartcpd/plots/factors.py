"""One column of a factor, drawn as the picture that suits its mode."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from smartcpd._data.labels import Mode
from smartcpd.plots.figure import BLUE, ORANGE, bare, brief, room_in
from smartcpd.report.axes import spread_labels
from smartcpd.report.pictures import rises, shape_of

TOP = 10
LONG_GAP = 20.0
"""Rows that are farther apart than so many usual steps are not joined by a line."""


def draw_column(ax: Any, mode: Mode, column: np.ndarray, signed: bool) -> Any:
    """Draw bars of the largest entries for names, a strip for cycles, columns or a line else."""
    draw = {"bars": _bars, "strip": _strip, "columns": _columns, "curve": _line}[shape_of(mode)]
    draw(ax, mode, column, signed)
    return ax


def _bars(ax: Any, mode: Mode, column: np.ndarray, signed: bool) -> None:
    rows = np.argsort(-np.abs(column), kind="stable")[:TOP][::-1]
    places = np.arange(rows.size)
    ax.barh(places, column[rows], color=_colours(column[rows]), height=0.7)
    names = [brief(text) for text in mode.text(rows)]
    # Labels are text: a dollar sign in them is not mathematics.
    ax.set_yticks(places, names, parse_math=False)
    ax.set_xlabel("entry" if signed else "share")
    bare(ax)


def _strip(ax: Any, mode: Mode, column: np.ndarray, signed: bool) -> None:
    peak = float(np.abs(column).max()) or 1.0
    low, colours = (-peak, "PuOr_r") if signed else (0.0, "Blues")
    ax.imshow(column[None], aspect="auto", cmap=colours, vmin=low, vmax=peak)
    ax.set_yticks([])
    ax.set_box_aspect(0.28)
    _label_some(ax, mode)


def _columns(ax: Any, mode: Mode, column: np.ndarray, signed: bool) -> None:
    ax.bar(np.arange(column.size), column, color=_colours(column), width=0.8)
    _label_some(ax, mode)
    bare(ax)


def _label_some(ax: Any, mode: Mode) -> None:
    """Name the axis and as many of its rows as there is room for."""
    texts = [brief(text) for text in mode.text()]
    shown = spread_labels(texts, room_in(ax))
    ax.set_xticks(shown, [texts[k] for k in shown], parse_math=False)
    ax.set_xlabel(mode.name, parse_math=False)


def _line(ax: Any, mode: Mode, column: np.ndarray, signed: bool) -> None:
    labels = mode.labels
    places: np.ndarray = np.arange(column.size)
    if labels.dtype.kind in "Miuf" and rises(labels):
        places = labels
    values = column if signed else column * column.size
    for stretch in _stretches(places):
        # A row without neighbours would be invisible as a line.
        marker = "." if stretch.stop - stretch.start == 1 else None
        ax.plot(places[stretch], values[stretch], color=BLUE, linewidth=1.2, marker=marker)
    if signed:
        ax.axhline(0.0, color=ORANGE, linewidth=0.6)
    else:
        ax.set_ylim(bottom=0.0)
    if places.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(maxticks=max(3, int(room_in(ax) // 45)))
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    elif labels.dtype.kind == "U":
        texts = [brief(text) for text in mode.text()]
        shown = spread_labels(texts, room_in(ax))
        ax.set_xticks(shown, [texts[k] for k in shown], parse_math=False)
    ax.set_xlabel(mode.name, parse_math=False)
    ax.set_ylabel("entry" if signed else "× mean")
    bare(ax)


def _stretches(places: np.ndarray) -> list[slice]:
    """Return the runs of rows without a gap, across which a line would tell of what nobody saw."""
    if places.size < 3:
        return [slice(0, places.size)]
    steps = np.diff(places).astype(float)
    cuts = np.flatnonzero(steps > LONG_GAP * np.median(steps)) + 1
    ends = [0, *cuts.tolist(), places.size]
    return [slice(a, b) for a, b in pairwise(ends)]


def _colours(values: np.ndarray) -> list[str]:
    return [ORANGE if value < 0 else BLUE for value in values]
