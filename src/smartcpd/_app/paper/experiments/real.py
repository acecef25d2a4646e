"""The common part of the three experiments on real data: mean loss against time, for two ranks."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from smartcpd._app.paper import figures, lines, peer_lines
from smartcpd._app.paper.contenders import Budget, Contender, Task
from smartcpd._app.paper.experiment import Experiment, Options, Panel, Plan
from smartcpd._app.paper.experiments.common import uniform_start
from smartcpd._app.paper.experiments.latent import draw_components
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table, amount, seconds, summaries
from smartcpd.datasets import RealData
from smartcpd.errors import DataNotFoundError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_FIBERS = 40
"""Number of fibers of an iteration, as in the paper."""
NEAR = 1e-3
"""A solver has arrived when its loss is within this share of where it ends."""
FLOOR = 1e-4
"""Figures do not show differences below this share of the loss."""
STOP = 1e-3
"""Relative change of the loss between two looks at which solvers as published stop."""


@dataclass(frozen=True)
class RealCase:
    """Real data, and the setting of the paper for it."""

    name: str
    title: str
    shows: str
    loss: str
    ranks: tuple[int, int]
    load: Callable[..., RealData]
    """Loads the data, given as ``fetch`` whether the network may be used."""
    stand_in: Callable[..., RealData]
    """Simulates data of the same size, given its ``random_state``."""
    paper: str
    """What the paper states about the data, in words."""
    rate: float
    """The learning rate of GCP-OPT, tuned: the best of 1e-3, 3e-3, 1e-2 and 3e-2 at the first rank,
    with two starts that are not among the trials.
    """

    @property
    def racing(self) -> tuple[Contender, ...]:
        """The paper's method and its rivals, of which GGN serves counts only."""
        others = lines.all_others(self.rate, ggn=self.loss == "poisson", stop=STOP)
        return (lines.smartcpd_published(STOP), *others)


def experiment(case: RealCase) -> Experiment:
    """Make the experiment on this data."""
    return Experiment(
        case.name,
        case.title,
        case.shows,
        partial(plan, case),
        partial(draw, case),
        partial(tables, case),
    )


def data_for(case: RealCase, options: Options) -> RealData:
    """Return the real data; a simulated stand-in only where the user asked for one or a
    quick look.
    """
    try:
        return case.load(fetch=not options.quick)
    except DataNotFoundError as error:
        if options.quick or options.simulate:
            return case.stand_in(random_state=0)
        raise DataNotFoundError(
            f"{error} (--simulate runs on a simulated stand-in of the same size instead.)"
        ) from None


def plan(case: RealCase, options: Options) -> Plan:
    data = data_for(case, options)
    X = data.tensor
    shape = "x".join(map(str, X.shape))
    words = f"{data.source}, {shape}, {X.nnz:,} nonzeros ({100 * X.nnz / X.n_cells:.2g} %)"

    def task(rank: int, seed: int) -> Task:
        start = uniform_start(X.shape, rank, seed)
        return Task(X, rank, case.loss, n_fibers=N_FIBERS, start=start, seed=seed)

    peers = peer_lines.sparse(case.loss) if options.peers else ()
    ranks = case.ranks[:1] if options.quick else case.ranks
    budget = Budget(1.0) if options.quick else Budget(6.0)
    panels = tuple(
        Panel(f"R={rank}", words, partial(task, rank), (*case.racing, *peers), budget)
        for rank in ranks
    )
    remark = (
        "As published, all start at the same factors, U(0, 1), which are far too large for data "
        "that is mostly zeros, and stop where a look changes the loss by less than a thousandth; "
        "SmartCPD reads uniform fibers and so pays for the zeros. Tuned, they make their own "
        "starts and stop by their own criterion; SmartCPD sums the zeros in closed form."
    )
    return Plan(panels, 2 if options.quick else 10, (f"Data: {words}.", remark), extra=data)


def draw(case: RealCase, plan: Plan, runs: Runs) -> dict[str, Figure]:
    width = (0.75 if len(plan.panels) == 1 else 1.0) * figures.FULL_WIDTH
    figure = figures.blank(len(plan.panels), width, height=2.8, sharey=True)
    for n, (ax, panel) in enumerate(zip(figure.axes, plan.panels, strict=True)):
        last = n == len(plan.panels) - 1
        figures.draw_runs(ax, above_lowest(runs, panel.name), panel, labels=last)
        ax.set_title(panel.name, fontsize=figures.TEXT)
        ax.set_ylabel("" if n else "Loss above the lowest found (share)", fontsize=figures.TEXT)
    figure.suptitle(_headline(plan.extra), fontsize=figures.TEXT + 1)
    found = draw_components(plan.extra, case.ranks[0], case.loss)
    return {case.name: figure, f"{case.name}_components": found}


def above_lowest(runs: Runs, panel: str) -> Runs:
    """Return runs whose error is how far their loss is above the lowest of the panel, as a share of
    it.

    Losses themselves would need two scales: they begin a hundred times as high as they end, and end
    a few percent from each other.
    """
    lowest = min(float(np.nanmin(run.loss)) for run in runs.of(panel))
    return runs.mapped(
        lambda run: run._replace(mse=np.maximum((run.loss - lowest) / abs(lowest), FLOOR))
    )


def _headline(data: RealData) -> str:
    """Return the headline, which warns readers who see only the picture of simulated data."""
    shape = "x".join(map(str, data.shape))
    return textwrap.fill(f"{data.source[0].upper()}{data.source[1:]}, {shape}", 66)


def tables(case: RealCase, plan: Plan, runs: Runs) -> list[Table]:
    rivals = [c.name for c in case.racing if c.name.startswith(("GCP-OPT", "GGN"))]
    header = ["rank", "solver", "trials", "loss, median", "mean", "best", "worst", "entries read"]
    header += ["time", "time to within 0.1 % of its end"]
    header += [f"time to where {rival} ends" for rival in rivals]
    rows = []
    for panel in plan.panels:
        for contender in panel.contenders:
            solver = contender.name
            ends = runs.finals(panel.name, solver, "loss")
            if not ends.size:
                continue
            losses = summaries(ends, (np.median, np.mean, np.min, np.max), digits=4)
            spent = [
                amount(runs.finals(panel.name, solver, "entries")),
                seconds(runs.finals(panel.name, solver, "time")),
            ]
            times = [seconds(times_to(runs, panel.name, solver, r)) for r in (solver, *rivals)]
            rows.append([panel.name, solver, str(ends.size), *losses, *spent, *times])
    title = f"Mean loss in the end ({plan.extra.source})"
    return [Table(case.name, title, header, rows, case.paper)]


def times_to(runs: Runs, panel: str, solver: str, rival: str) -> np.ndarray:
    """Return the seconds, trial by trial, until a solver is within 0.1 % of where a rival ends."""
    ends = {run.trial: run.final("loss") for run in runs.of(panel, rival)}
    aims = {trial: end + NEAR * abs(end) for trial, end in ends.items()}
    mine = [run for run in runs.of(panel, solver) if run.trial in aims]
    return np.array([run.first("loss", aims[run.trial]) for run in mine])
