"""Places by latitude and longitude, drawn where they are."""

from __future__ import annotations

import math

import numpy as np

from smartcpd.report import naming, svg
from smartcpd.report.rows import ModeRows
from smartcpd.report.text import escape, number, percent

WIDTH, TALLEST = 360.0, 300.0
MOST_DOTS = 400
HELD = 0.95
"""The share of a component that the places hold which are drawn."""
MOST_CELLS = 48
"""A side of a grid has at most so many cells; finer ones are added up."""
SMALLEST, LARGEST = 1.2, 9.0


def map_of(modes: list[ModeRows], component: int) -> str:
    """Draw the places of a component, if a mode has any or two modes are coordinates."""
    for rows in modes:
        if naming.is_place(rows.mode):
            return _framed(rows.mode.name, _dots(rows, component))
    pair = naming.coordinates([rows.mode for rows in modes])
    if pair is None or modes[0].signed:
        return ""
    north, east = (modes[n] for n in pair)
    return _framed(f"{north.mode.name} by {east.mode.name}", _grid(north, east, component))


def _framed(title: str, picture: str) -> str:
    if not picture:
        return ""
    return f'<section class="map"><h4>{escape(title)} <span>as a map</span></h4>{picture}</section>'


def _dots(rows: ModeRows, component: int) -> str:
    """Draw a dot for each place, its area by the entry."""
    column = rows.factor[:, component]
    strongest = rows.strongest(component, MOST_DOTS)
    held = np.cumsum(np.abs(column[strongest])) / (float(np.abs(column).sum()) or 1.0)
    # Places far away that hold next to nothing would make all others small.
    most = max(int(np.searchsorted(held, HELD)) + 1, 2)
    chosen = [int(r) for r in strongest[:most] if column[r] != 0]
    found = [(naming.place_of(rows.text_of(r)), r) for r in chosen]
    places = [(place, r) for place, r in found if place is not None]
    if len(places) < 2:
        return ""
    at, height = _projection(np.array([place for place, _ in places]))
    scale = float(np.abs(column).max()) or 1.0
    parts = []
    for (x, y), (_, r) in zip(at.tolist(), places, strict=True):
        size = SMALLEST + (LARGEST - SMALLEST) * math.sqrt(abs(float(column[r])) / scale)
        value = number(float(column[r]), 2) if rows.signed else percent(float(column[r]))
        kind = "place negative" if column[r] < 0 else "place"
        parts.append(
            f'<circle class="{kind}" data-row="{r}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}">'
            f"<title>{escape(rows.text_of(r))}: {value}</title></circle>"
        )
    label = f"The {len(places)} strongest places by latitude and longitude, north is up"
    return svg.picture(WIDTH, height, parts, label, "chart map-picture")


def _grid(north: ModeRows, east: ModeRows, component: int) -> str:
    """Draw the product of both columns as cells, north up."""
    rows, columns = (_gathered(mode.factor[:, component]) for mode in (north, east))
    values = np.outer(rows, columns)
    top = float(values.max()) or 1.0
    height = min(TALLEST, max(60.0, WIDTH * rows.size / columns.size))
    w, h = WIDTH / columns.size, height / rows.size
    parts = [f'<rect class="track" width="{WIDTH:g}" height="{height:.1f}"/>']
    for i, j in zip(*np.nonzero(values > 0.01 * top), strict=True):
        parts.append(
            f'<rect class="cell" x="{j * w:.1f}" y="{height - (i + 1) * h:.1f}" width="{w:.2f}" '
            f'height="{h:.2f}" fill-opacity="{values[i, j] / top:.2f}"/>'
        )
    label = f"A map of {north.mode.name} by {east.mode.name}, north is up"
    return svg.picture(WIDTH, height, parts, label, "chart map-picture")


def _gathered(column: np.ndarray) -> np.ndarray:
    starts = np.arange(0, column.size, -(-column.size // MOST_CELLS))
    return np.add.reduceat(column, starts)


def _projection(places: np.ndarray) -> tuple[np.ndarray, float]:
    """Return where places are in the picture, and how tall that is."""
    # A degree east is shorter than one north by the cosine of the latitude.
    north, east = places.T
    across = (east - east.mean()) * math.cos(math.radians(float(north.mean())))
    width, height = float(np.ptp(across)) or 1e-9, float(np.ptp(north)) or 1e-9
    room = 2.0 * LARGEST
    scale = min((WIDTH - room) / width, (TALLEST - room) / height)
    x = WIDTH / 2 + (across - (across.max() + across.min()) / 2) * scale
    y = LARGEST + (north.max() - north) * scale
    return np.stack([x, y], axis=1), height * scale + room
