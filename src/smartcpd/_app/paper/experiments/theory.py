"""The convergence theorem as a figure: how the paper's measure falls with the number of steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from smartcpd._app.paper import figures
from smartcpd._app.paper.experiment import Experiment, Options, Plan
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, number
from smartcpd._estimator import SmartCPD
from smartcpd._fitting.found import Report
from smartcpd._fitting.model import CPModel
from smartcpd.metrics import stationarity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPE, RANK, N_FIBERS = (8, 7, 6), 2, 4
BOX = "box(0.01, 3)"
"""The theorem asks for factors in a compact set."""
MIRROR, LAM = "entropy", 0.1
SCALE = 10.0
"""The constant in front of the steps of the theorem, SCALE / sqrt(T)."""
LOOKS = 6
"""Number of moments of a run at which the measure is taken; each costs many full passes."""
EPOCH = 100
"""Iterations of an epoch of so small a tensor."""
SHRINKING, FIXED = "steps of 1/√T", "steps of a fixed size"


class Point(NamedTuple):
    """The least measure on the way of T steps, in the mean over runs."""

    steps: str
    T: int
    measure: float


def plan(options: Options) -> Plan:
    lengths = (600, 2400) if options.quick else (600, 1200, 2400, 4800, 9600, 19200)
    trials = 2 if options.quick else 20
    X = data(options.seed)
    shrinking = [Point(SHRINKING, T, least(X, SCALE / math.sqrt(T), T, trials)) for T in lengths]
    fixed = [Point(FIXED, T, least(X, SCALE / math.sqrt(lengths[0]), T, trials)) for T in lengths]
    remark = (
        f"Poisson counts, {'x'.join(map(str, SHAPE))}, R={RANK}, {N_FIBERS} fibers an iteration, "
        f"entropy map, factors in {BOX}, mean over {trials} runs. The measure is the paper's "
        "D(Â, A), whose Â is the Bregman proximal point."
    )
    return Plan((), trials, (remark,), extra=(*shrinking, *fixed))


def data(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = CPModel([rng.uniform(0.2, 1.2, (n, RANK)) for n in SHAPE])
    return rng.poisson(3 * np.asarray(truth.full()))


def least(X: np.ndarray, eta: float, T: int, trials: int) -> float:
    """Return the least over the moments of a run of the mean measure over runs, as the theorem
    has it.
    """
    return float(np.mean([measures(X, eta, T, seed) for seed in range(trials)], axis=0).min())


def measures(X: np.ndarray, eta: float, T: int, seed: int) -> list[float]:
    """Return the measure at some moments of a run with constant steps."""
    due = np.unique(np.linspace(1, T // EPOCH, LOOKS).round()).astype(int)
    found = []

    def look(report: Report) -> None:
        if report.record.epoch in due:
            model = report.model()
            found.append(stationarity(model, X, mirror=MIRROR, constraint=BOX, lam=LAM))

    rng = np.random.default_rng(seed)
    SmartCPD(
        RANK,
        "poisson",
        mirror=MIRROR,
        constraint=BOX,
        step=f"constant({eta!r})",
        solver="smd",
        n_fibers=N_FIBERS,
        averaging=False,
        overcomplete=1,
        tol=0,
        max_epochs=T // EPOCH,
        init=[rng.uniform(0.2, 1.0, (n, RANK)) for n in SHAPE],
        random_state=seed,
        n_threads=1,
        callback=look,
        progress=False,
    ).fit(X)
    return found


def slope(points: list[tuple[float, float]]) -> float:
    """Return the power of T by which a measure falls."""
    T, measure = np.log(np.array(points)).T
    return float(np.polyfit(T, measure, 1)[0])


def draw(plan: Plan, runs: Runs) -> dict[str, Figure]:
    figure = figures.blank(1, width=0.75 * figures.FULL_WIDTH)
    (ax,) = figure.axes
    for name, colour in ((SHRINKING, figures.RED), (FIXED, figures.BLUE)):
        found = [(p.T, p.measure) for p in plan.extra if p.steps == name]
        label = f"{name}: falls as T to the power {slope(found):.2f}"
        ax.plot(*zip(*found, strict=True), color=colour, marker="o", ms=4, label=label)
    first = plan.extra[0]
    T = np.array([p.T for p in plan.extra if p.steps == SHRINKING])
    ax.plot(
        T,
        first.measure * np.sqrt(first.T / T),
        color=figures.GREY,
        ls=":",
        label="C/√T",
    )
    ax.set(xscale="log", yscale="log", xlabel="Steps T", ylabel="least E D(Â, A) on the way")
    ax.legend(frameon=False, fontsize=figures.TEXT)
    return {"theory": figure}


def tables(plan: Plan, runs: Runs) -> list[Table]:
    rows = [[p.steps, str(p.T), number(p.measure, 3)] for p in plan.extra]
    return [
        Table("theory", "The measure of the theorem", ["steps", "T", "least mean measure"], rows)
    ]


EXPERIMENT = Experiment(
    "theory",
    "the rate C/√T of the convergence theorem",
    "the convergence theorem, part 2, which the paper does not draw",
    plan,
    draw,
    tables,
)
