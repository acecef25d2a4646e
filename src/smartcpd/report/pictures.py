"""One column of a factor, drawn as the picture that suits its mode."""

from __future__ import annotations

import numpy as np

from smartcpd._data.labels import Kind, Mode
from smartcpd.report import svg
from smartcpd.report.axes import number_ticks, spread_labels, time_ticks
from smartcpd.report.rows import ModeRows
from smartcpd.report.text import escape, number, percent

WIDTH = 360.0
LEFT, RIGHT = 30.0, 6.0
MOST_POINTS, LEAST_POINTS = 360, 60
POINTS = 30_000
"""Number of points that all lines of a page may have together."""
FEW = 14
"""Up to so many numbers are drawn as columns, more as a line."""
MOST_CELLS = 168
"""Up to so many rows of a cycle are drawn as a strip: the hours of a week."""
TOP = 8
MOST_TOLD = 3


def shape_of(mode: Mode) -> str:
    """Return which picture suits the rows of a mode."""
    if mode.kind is Kind.CATEGORY:
        return "bars"
    if mode.kind is Kind.CYCLE and len(mode) <= MOST_CELLS:
        return "strip"
    return "columns" if mode.kind is Kind.NUMBER and len(mode) <= FEW else "curve"


def factor_picture(rows: ModeRows, component: int) -> str:
    """Draw one mode of one component, with a line of words over the picture."""
    draw = {"bars": bars, "strip": strip, "columns": columns, "curve": curve}[shape_of(rows.mode)]
    return (
        f'<section class="mode" data-mode="{rows.number}" data-component="{component}">'
        f"<h4>{escape(rows.mode.name)} <span>{escape(_words(rows, component))}</span></h4>"
        f"{draw(rows, component)}</section>"
    )


def _words(rows: ModeRows, component: int) -> str:
    """Describe the column as a person would."""
    column = rows.factor[:, component]
    if not column.any():
        return "all zero"
    if rows.as_overall(component):
        return "as in all components"
    if rows.mode.kind is not Kind.CATEGORY:
        peak = rows.text_of(int(np.abs(column).argmax()))
        return f"{'strongest' if rows.signed else 'highest'} at {peak}"
    if rows.signed:
        return f"{len(column):,} in all"
    held = np.sort(column)[::-1].cumsum()
    there = int(np.count_nonzero(column))
    if there <= MOST_TOLD:
        return f"{there:,} of {len(column):,}" if there < len(column) else f"{there:,} in all"
    return f"top {MOST_TOLD} hold {percent(held[MOST_TOLD - 1])}"


def bars(rows: ModeRows, component: int) -> str:
    """Draw names with bars, longest first; a script adds the rest on demand."""
    column = rows.factor[:, component]
    scale = float(np.abs(column).max()) or 1.0
    strongest = [row for row in rows.strongest(component, TOP).tolist() if column[row] != 0]
    items = "".join(_bar(rows, row, component, scale) for row in strongest)
    others = min(int(np.count_nonzero(column)), rows.kept.size) - len(strongest)
    more = ""
    rest = int(np.count_nonzero(column)) - len(strongest)
    if others > 0:
        more = (
            f'<button type="button" class="more" aria-expanded="false" hidden>'
            f"Show {others:,} more{'' if rows.complete else f' of {rest:,}'}</button>"
        )
    return f'<ol class="bars" data-scale="{scale:.4g}">{items}</ol>{more}'


def _bar(rows: ModeRows, row: int, component: int, scale: float) -> str:
    value = float(rows.factor[row, component])
    length = 100.0 * value / scale
    if rows.signed:
        start, width = (50.0, length / 2) if value >= 0 else (50.0 + length / 2, -length / 2)
    else:
        start, width = 0.0, length
    label = escape(rows.text_of(row))
    return (
        f'<li data-row="{row}"><span class="name" title="{label}">{label}</span>'
        f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="8"/><rect class="fill{_sign(value)}" '
        f'x="{start:.1f}" width="{width:.1f}" height="8"/>{_overall(rows, row, scale)}</svg>'
        f"<b>{_entry(rows, value)}</b><em>{_lift(rows.lift(row, component))}</em></li>"
    )


def _overall(rows: ModeRows, row: int, scale: float) -> str:
    """Draw a tick where the bar would end if the row were as large as in all components."""
    if rows.signed or rows.factor.shape[1] == 1:
        return ""
    at = min(100.0 * float(rows.overall[row]) / scale, 99.0)
    return f'<rect class="overall" x="{at:.1f}" y="0" width="1.2" height="8"/>'


def _lift(times: float | None) -> str:
    if times is None:
        return ""
    return f"{times:.0f}×" if times >= 10 else f"{times:.1f}×"


def strip(rows: ModeRows, component: int) -> str:
    """Draw cells side by side, the stronger the larger their entries."""
    column = rows.factor[:, component]
    texts = rows.mode_texts(np.arange(column.size))
    scale = float(np.abs(column).max()) or 1.0
    width = WIDTH / column.size
    gap = 1.5 if column.size <= 60 else 0.0
    parts = []
    for row, value in enumerate(column.tolist()):
        parts.append(
            f'<rect class="cell{_sign(value)}" data-row="{row}" x="{row * width:.2f}" '
            f'width="{width - gap:.2f}" height="30" rx="2" '
            f'fill-opacity="{0.06 + 0.94 * abs(value) / scale:.3f}">'
            f"<title>{escape(texts[row])}: {_entry(rows, value)}</title></rect>"
        )
    for row in spread_labels(texts, WIDTH):
        parts.append(svg.text((row + 0.5) * width - gap / 2, 44, texts[row]))
    peak = texts[int(np.abs(column).argmax())]
    return svg.picture(
        WIDTH,
        48,
        parts,
        f"{rows.mode.name} as a strip of {column.size}, strongest at {peak}",
        "chart strip",
    )


def columns(rows: ModeRows, component: int) -> str:
    """Draw a few numbers in order, as columns."""
    column = rows.factor[:, component]
    texts = rows.mode_texts(np.arange(column.size))
    scale = float(np.abs(column).max()) or 1.0
    width, height = WIDTH / column.size, 64.0
    base = height / 2 if (column < 0).any() else height
    parts = [svg.line(0, base, WIDTH, base, "axis")]
    for row, value in enumerate(column.tolist()):
        size = base * abs(value) / scale
        top = base - size if value >= 0 else base
        parts.append(
            f'<rect class="column{_sign(value)}" data-row="{row}" '
            f'x="{row * width + 1:.2f}" y="{top:.1f}" width="{max(width - 2, 1):.2f}" '
            f'height="{size:.1f}"><title>{escape(texts[row])}: {_entry(rows, value)}</title></rect>'
        )
    for row in spread_labels(texts, WIDTH):
        parts.append(svg.text((row + 0.5) * width, height + 13, texts[row]))
    label = f"{rows.mode.name} as {column.size} columns"
    return svg.picture(WIDTH, height + 18, parts, label, "chart columns")


def curve(rows: ModeRows, component: int) -> str:
    """Draw a line over time or numbers, thinned out where there are more points than pixels."""
    column = rows.factor[:, component]
    places, ticks = positions(rows)
    # A line shows multiples of the mean: 1 is what every row would have if all were equal.
    values = column if rows.signed else column * column.size
    height, bottom = 92.0, 74.0
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    high = high if high > low else low + 1.0
    span = places[-1] - places[0] or 1.0

    def across(place: np.ndarray | float) -> np.ndarray:
        return LEFT + (np.asarray(place) - places[0]) / span * (WIDTH - LEFT - RIGHT)

    def up(value: np.ndarray | float) -> np.ndarray:
        return bottom - (np.asarray(value) - low) / (high - low) * (bottom - 6.0)

    parts = []
    for value in number_ticks(low, high, 3):
        y = float(up(value))
        parts.append(svg.line(LEFT, y, WIDTH - RIGHT, y, "grid"))
        parts.append(svg.text(LEFT - 5, y + 3.5, _short_number(value, rows), "tick", "end"))
    for place, words in ticks:
        x = float(across(place))
        anchor = "start" if x < LEFT + 12 else "end" if x > WIDTH - 26 else "middle"
        parts.append(svg.line(x, bottom, x, bottom + 3, "axis"))
        parts.append(svg.text(x, height - 4, words, "tick", anchor))
    at, lows, means, highs = thinned(places, values, rows.factor.shape[1])
    if at.size < places.size:
        outline = np.concatenate([at, at[::-1]]), np.concatenate([highs, lows[::-1]])
        parts.append(f'<path class="band" d="{svg.path(across(outline[0]), up(outline[1]))}Z"/>')
    parts.append(f'<path class="under" d="{svg.area(across(at), up(means), float(up(0.0)))}"/>')
    parts.append(f'<path class="line" d="{svg.path(across(at), up(means))}"/>')
    parts.append(
        '<line class="marker" y1="4" y2="74" hidden=""/><circle class="dot" r="3" hidden=""/>'
    )
    extent = ",".join(f"{v:.12g}" for v in (places[0], span, low, high))
    label = f"{rows.mode.name}: a line over {column.size:,} rows, {_words(rows, component)}"
    more = f' data-extent="{extent}" tabindex="0"'
    picture = svg.picture(WIDTH, height, parts, label, "chart curve", more)
    note = ""
    if at.size < places.size:
        many = -(-places.size // at.size)
        words = f"Each point is the mean of {many:,} rows; the band shows their range."
        note = f'<p class="small">{words}</p>'
    return picture + note


def positions(rows: ModeRows) -> tuple[np.ndarray, list[tuple[float, str]]]:
    """Return where rows are on the axis, in order, and the ticks."""
    labels = rows.mode.labels
    size = labels.size
    if labels.dtype.kind == "M" and not np.isnat(labels).any() and rises(labels):
        seconds = labels.astype("datetime64[ms]").astype(np.int64) / 1000.0
        if size > 1:
            return seconds, time_ticks(labels, 5)
    elif labels.dtype.kind in "iuf" and size > 1 and rises(labels):
        places = labels.astype(np.float64)
        if np.isfinite(places).all():
            ticks = number_ticks(places[0], places[-1], 5)
            return places, [(t, number(t)) for t in ticks]
    few = np.unique(np.linspace(0, size - 1, min(4, size)).round().astype(np.int64))
    places = np.arange(size, dtype=np.float64)
    return places, list(zip(few.astype(float).tolist(), rows.mode_texts(few), strict=True))


def thinned(
    places: np.ndarray, values: np.ndarray, n_lines: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a few hundred points at most: places, and lowest, mean and highest rows there."""
    most = min(max(POINTS // (4 * n_lines), LEAST_POINTS), MOST_POINTS)
    if places.size <= most:
        return places, values, values, values
    starts = np.arange(0, places.size, -(-places.size // most))
    counts = np.diff(np.append(starts, places.size))
    means = [np.add.reduceat(a, starts) / counts for a in (places, values)]
    lows, highs = (f.reduceat(values, starts) for f in (np.minimum, np.maximum))
    return means[0], lows, means[1], highs


def rises(labels: np.ndarray) -> bool:
    """Whether every label is above the one before it."""
    return bool((labels[1:] > labels[:-1]).all())


def _entry(rows: ModeRows, value: float) -> str:
    return number(value, 2) if rows.signed else percent(value)


def _sign(value: float) -> str:
    return " negative" if value < 0 else ""


def _short_number(value: float, rows: ModeRows) -> str:
    return number(value, 2) if rows.signed else f"{value:g}×"
