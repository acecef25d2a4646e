"""Upper bounds of a loss for different mirror maps, and how far each lets one step go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from smartcpd import mirrors
from smartcpd._app.paper import figures
from smartcpd._app.paper.experiment import Experiment, Options, Plan
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, number
from smartcpd.mirrors import Mirror

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Function = Callable[[np.ndarray], np.ndarray]

X_VALUE, AT, LOW, HIGH = 3.0, 5.0, 0.5, 10.0
"""The datum, the coordinates of the point, and the range that is drawn."""
POINTS = 241


@dataclass(frozen=True)
class Map:
    """A mirror map for a >= 0, with its second derivative and its formula for the picture."""

    name: str
    mirror: Mirror
    curvature: Function


MAPS = (
    Map("½a²", mirrors.get("quadratic"), np.ones_like),
    Map("a log a", mirrors.get("entropy"), lambda a: 1 / a),
    Map("-log a", mirrors.get("burg"), lambda a: 1 / a**2),
)


def loss(a: Any, b: Any) -> Any:
    """l(x, m) = m - x log m with m = a + b."""
    return a + b - X_VALUE * np.log(a + b)


def smallest_scale(map_: Map) -> float:
    """The least L with which the lemma's condition holds on the range that is drawn.

    The convex part at a coordinate is -x log(h a / lambda) times lambda = 1/2, whose curvature is
    x / (2 a²); L times that of phi must not be below it.
    """
    a = np.geomspace(LOW, HIGH, 2000)
    return float(np.max(0.5 * X_VALUE / a**2 / map_.curvature(a)))


def bound(map_: Map, a: Any, b: Any) -> Any:
    """The right side of the lemma around the point (AT, AT)."""
    slope = 1 - X_VALUE / (2 * AT)
    divergence = sum(map_.mirror.bregman(c, np.array([AT])) for c in (a, b))
    return loss(AT, AT) + slope * (a + b - 2 * AT) + smallest_scale(map_) * divergence


def next_point(map_: Map) -> float:
    """Return both coordinates of the bound's minimum; by symmetry they are equal."""
    found = minimize_scalar(
        lambda c: bound(map_, c, c).item(), bounds=(LOW, HIGH), method="bounded"
    )
    return float(found.x)


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    figure = figures.blank(len(MAPS) + 1, height=2.05, sharex=True, sharey=True)
    axis = np.linspace(LOW, HIGH, POINTS)
    a, b = np.meshgrid(axis, axis)
    above = np.geomspace(0.03, 30.0, 12)
    shown: list[tuple[str, np.ndarray, float]] = [("the loss itself", loss(a, b), np.nan)]
    shown += [(f"bound, φ = {m.name}", bound(m, a, b), next_point(m)) for m in MAPS]
    for ax, (title, values, reached) in zip(figure.axes, shown, strict=True):
        ax.grid(False)
        ax.contour(
            a,
            b,
            values,
            levels=values.min() + above,
            colors=figures.BLUE,
            linewidths=0.7,
            negative_linestyles="solid",
        )
        ax.plot([LOW, X_VALUE - LOW], [X_VALUE - LOW, LOW], color=figures.RED, lw=1.6)
        ax.plot(AT, AT, "o", color=figures.RED, ms=4)
        ax.annotate(
            "ā",
            (AT, AT),
            (5, 2),
            textcoords="offset points",
            fontsize=figures.TEXT,
            color=figures.RED,
        )
        if np.isfinite(reached):
            ax.annotate(
                "",
                (reached, reached),
                (AT, AT),
                arrowprops={"arrowstyle": "->", "color": figures.BLACK, "lw": 1.2},
            )
        ax.set_title(title, fontsize=figures.TEXT)
        ax.set(xlabel="$a_1$", xticks=range(2, 11, 2), aspect="equal")
    figure.axes[0].set_ylabel("$a_2$")
    return {"contours": figure}


def tables(plan: Plan, runs: Runs) -> list[Table]:
    start, best = loss(AT, AT), loss(X_VALUE, 0.0)
    rows = []
    for map_ in MAPS:
        reached = next_point(map_)
        now = loss(reached, reached)
        gained = (start - now) / (start - best)
        scale = number(smallest_scale(map_), 3)
        rows.append([map_.name, scale, f"{reached:.3f}", f"{now:.4f}", f"{gained:.1%}"])
    note = (
        f"From a = ({AT:g}, {AT:g}), L as small as a bound for entries from {LOW:g} "
        f"to {HIGH:g}; the loss is {start:.4f} there and {best:.4f} at its minimum. The paper "
        "prints no figures; it states that the step of ½a² is very small, those of the other maps "
        "much larger."
    )
    header = ["φ", "L", "next a₁ = a₂", "loss there", "of the way"]
    return [Table("contours", "One step on the bound", header, rows, note)]


def plan(options: Options) -> Plan:
    return Plan((), 0)


EXPERIMENT = Experiment(
    "contours",
    "upper bounds of the Poisson loss for different mirror maps",
    "the contour maps of upper bounds with different phi",
    plan,
    draw,
    tables,
)
