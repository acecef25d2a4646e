"""Pictures as small as a word. They bring their colours along, and need no style sheet."""

from __future__ import annotations

import numpy as np

from smartcpd.report.svg import area, coordinate, path

BLUE, ORANGE = "#4c86d8", "#d9772f"
"""Seen as well on white as on black."""
WIDTH, HEIGHT = 110.0, 24.0
MOST_POINTS = 110


def bar(share: float, width: float = 48.0) -> str:
    """Draw a share of 1 as a bar."""
    length = coordinate(width * min(max(share, 0.0), 1.0))
    return _picture(width, 8.0, f'<rect width="{length}" height="8" fill="{BLUE}"/>')


def curve(
    column: np.ndarray, width: float = WIDTH, height: float = HEIGHT, from_zero: bool = True
) -> str:
    """Draw a column as a line, over the area to 0."""
    values = _averaged(column)
    low = min(0.0, float(values.min())) if from_zero else float(values.min())
    high = max(0.0, float(values.max())) if from_zero else float(values.max())
    span = (high - low) or 1.0
    xs = np.linspace(1.0, width - 1.0, values.size) if values.size > 1 else np.array([width / 2])
    ys = 1.0 + (height - 2.0) * (high - values) / span
    foot = 1.0 + (height - 2.0) * (high if from_zero else high - low) / span
    shade = f'<path d="{area(xs, ys, foot)}" fill="{BLUE}" fill-opacity=".25"/>'
    line = f'<path d="{path(xs, ys)}" fill="none" stroke="{BLUE}" stroke-width="1.3"/>'
    return _picture(width, height, shade + line)


def heights(column: np.ndarray, width: float = WIDTH, height: float = HEIGHT) -> str:
    """Draw a column as columns side by side."""
    values = _averaged(column)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    span, step = (high - low) or 1.0, width / values.size
    parts = []
    for k, value in enumerate(values.tolist()):
        size, top = height * abs(value) / span, height * (high - max(value, 0.0)) / span
        colour = BLUE if value >= 0 else ORANGE
        parts.append(
            f'<rect x="{k * step:.1f}" y="{top:.1f}" width="{0.85 * step:.1f}" '
            f'height="{size:.1f}" fill="{colour}"/>'
        )
    return _picture(width, height, "".join(parts))


def whisker(value: float, low: float, high: float, width: float = WIDTH) -> str:
    """Draw an interval and what lies in it, between 0 and the farther end."""
    ends = [x for x in (0.0, value, low, high) if np.isfinite(x)]
    left, span = min(ends), (max(ends) - min(ends)) or 1.0

    def at(x: float) -> float:
        return 3.0 + (width - 6.0) * min(max((x - left) / span, 0.0), 1.0)

    line = f'<path d="M{at(low):.1f} 5H{at(high):.1f}" stroke="{BLUE}" stroke-width="2"/>'
    zero = f'<path d="M{at(0.0):.1f} 0V10" stroke="currentColor" stroke-opacity=".4"/>'
    return _picture(width, 10.0, f'{zero}{line}<circle cx="{at(value):.1f}" cy="5" r="2.6" '
                    f'fill="{ORANGE}"/>')  # fmt: skip


def _averaged(column: np.ndarray) -> np.ndarray:
    """Return at most so many points; neighbours are averaged where there are more."""
    values = np.nan_to_num(np.asarray(column, float))
    parts = np.array_split(values, min(values.size, MOST_POINTS))
    return np.array([part.mean() for part in parts])


def _picture(width: float, height: float, content: str) -> str:
    return (
        f'<svg width="{coordinate(width)}" height="{coordinate(height)}" aria-hidden="true" '
        f'style="vertical-align:middle">{content}</svg>'
    )
