"""The curve of the loss during the fit, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from smartcpd._problem.history import History
from smartcpd.report import svg
from smartcpd.report.axes import log_ticks, number_ticks
from smartcpd.report.text import escape, number

WIDTH, HEIGHT = 330.0, 262.0
LEFT, RIGHT, TOP, BOTTOM = 38.0, 6.0, 10.0, 222.0
MOST_POINTS = 600
MOST_DOTS = 40
ROUNDING = 1e-13
"""Differences below this share of the loss are those of rounding."""
COLOURS = 6
"""Number of colours in the style sheet; later phases take them again."""


def loss_curve(history: History) -> str:
    """Draw how far each row of the history was above the best one, on a logarithmic axis."""
    rows = [record for record in history if np.isfinite(record.objective)]
    if len(rows) < 2:
        return '<p class="small">The fit recorded too few steps to draw a curve.</p>'
    rows = [*rows[:: -(-len(rows) // MOST_POINTS)], rows[-1]]
    objective = np.array([record.objective for record in rows])
    excess = objective - objective.min()
    positive = excess[excess > 0]
    if excess.max() <= ROUNDING * np.abs(objective).max():
        return '<p class="small">The loss stayed the same from the first step to the last.</p>'
    times = np.array([record.time for record in rows])
    clock = times[-1] > times[0]
    places = times if clock else np.array([float(record.epoch) for record in rows])
    # The best row is left out, since its logarithm would be minus infinity.
    floor = float(positive.min()) / 2.0
    low, high = np.log10(floor), np.log10(float(positive.max()))
    span = float(places.max() - places.min()) or 1.0
    x = LEFT + (places - places.min()) / span * (WIDTH - LEFT - RIGHT)
    height = (np.log10(np.maximum(excess, floor)) - low) / ((high - low) or 1.0)
    y = BOTTOM - height * (BOTTOM - TOP)
    parts = _axes(low, high, float(places.min()), span, "seconds" if clock else "epochs")
    drawn, legend = _curves([record.phase for record in rows], x, y)
    label = f"The loss fell from {number(objective[0], 6)} to {number(objective.min(), 6)}"
    picture = svg.picture(WIDTH, HEIGHT, [*parts, *drawn], label, "chart wide")
    return f'{picture}<ul class="legend">{legend}</ul>'


def _axes(low: float, high: float, first: float, span: float, unit: str) -> list[str]:
    parts = []
    for value in log_ticks(10.0**low, 10.0**high):
        at = BOTTOM - (np.log10(value) - low) / ((high - low) or 1.0) * (BOTTOM - TOP)
        parts.append(svg.line(LEFT, at, WIDTH - RIGHT, at, "grid"))
        parts.append(svg.text(LEFT - 8, at + 4, f"{value:.0e}".replace("e-0", "e-"), "tick", "end"))
    for value in number_ticks(first, first + span, 5):
        at = LEFT + (value - first) / span * (WIDTH - LEFT - RIGHT)
        parts.append(svg.line(at, BOTTOM, at, BOTTOM + 4, "axis"))
        parts.append(svg.text(at, BOTTOM + 17, f"{value:g}"))
    parts.append(svg.line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM, "axis"))
    parts.append(svg.text((LEFT + WIDTH) / 2, HEIGHT - 4, unit))
    return parts


def stretches(phases: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return the number of the phase, the first row and the end of each stretch of one phase."""
    names = list(dict.fromkeys(phases))
    starts = [k for k, name in enumerate(phases) if k == 0 or name != phases[k - 1]]
    return [(names.index(phases[a]), a, b) for a, b in pairwise([*starts, len(phases)])]


def _curves(phases: list[str], x: np.ndarray, y: np.ndarray) -> tuple[list[str], str]:
    """Draw a line for each stretch of rows of one phase, joined to the last; and the legend."""
    drawn = []
    for phase, start, end in stretches(phases):
        begin = max(start - 1, 0)
        colour = phase % COLOURS
        line = svg.path(x[begin:end], y[begin:end])
        few = end - start <= MOST_DOTS
        dots = "".join(
            f'<circle class="phase-dot phase-{colour}" cx="{svg.coordinate(a)}" '
            f'cy="{svg.coordinate(b)}" r="2"/>'
            for a, b in zip(x[start:end], y[start:end], strict=True)
        )
        drawn.append(
            f"<g><title>{escape(phases[start])}</title>"
            f'<path class="phase phase-{colour}" d="{line}"/>{dots if few else ""}</g>'
        )
    legend = "".join(
        f'<li><svg viewBox="0 0 22 8" aria-hidden="true"><path class="phase phase-{k % COLOURS}" '
        f'd="M0 4L22 4"/></svg>{escape(name)}</li>'
        for k, name in enumerate(list(dict.fromkeys(phases))[: 2 * COLOURS])
    )
    return drawn, legend
