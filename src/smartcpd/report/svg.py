"""Pictures as SVG. Colours are classes, which the style sheet fills in for light and dark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartcpd.report.text import escape


def coordinate(value: float) -> str:
    """Write a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def path(xs: np.ndarray, ys: np.ndarray) -> str:
    """Write a line through points."""
    points = (f"{coordinate(x)} {coordinate(y)}" for x, y in zip(xs, ys, strict=True))
    return "M" + "L".join(points)


def area(xs: np.ndarray, ys: np.ndarray, base: float) -> str:
    """Write the area between a line and a base line."""
    foot = coordinate(base)
    return f"{path(xs, ys)}L{coordinate(xs[-1])} {foot}L{coordinate(xs[0])} {foot}Z"


def text(x: float, y: float, content: str, kind: str = "tick", anchor: str = "middle") -> str:
    """Write a text in the picture."""
    return (
        f'<text class="{kind}" x="{coordinate(x)}" y="{coordinate(y)}" '
        f'text-anchor="{anchor}">{escape(content)}</text>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Write a straight line."""
    ends = zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2), strict=True)
    return f'<line class="{kind}" ' + " ".join(f'{k}="{coordinate(v)}"' for k, v in ends) + "/>"


def picture(
    width: float, height: float, parts: Sequence[str], label: str, kind: str, more: str = ""
) -> str:
    """Write the whole picture, with a sentence for those who do not see it."""
    return (
        f'<svg class="{kind}" viewBox="0 0 {coordinate(width)} {coordinate(height)}" role="img" '
        f'aria-label="{escape(label)}"{more}>{"".join(parts)}</svg>'
    )
