"""The parts of an experiment: panels of trials, and the figures and tables of their runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from smartcpd._app.paper.contenders import Budget, Contender, Task
from smartcpd._app.paper.runs import Runs
from smartcpd._app.paper.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Options:
    """The user's choices on the command line."""

    quick: bool = False
    peers: bool = False
    simulate: bool = False
    """Whether to run on a simulated stand-in where real data is missing; quick runs do so
    anyway. Nothing is judged by them.
    """
    seed: int = 0
    trials: int | None = None
    limit: float | None = None
    epochs: float | None = None
    only: str = ""
    """Part of the names of solvers that run; what others have run is kept."""

    def applied_to(self, plan: Plan) -> Plan:
        """Return the plan with the trials and the budget that the user asked for."""
        asked = {"seconds": self.limit, "epochs": self.epochs}
        given = {name: value for name, value in asked.items() if value is not None}
        panels = tuple(replace(p, budget=replace(p.budget, **given)) for p in plan.panels)
        return replace(plan, panels=panels, trials=self.trials or plan.trials)


@dataclass(frozen=True)
class Panel:
    """One setting, decomposed by all contenders in every trial.

    Attributes
    ----------
    name : str
        The name of the setting.
    data : str
        What the data is, in words; runs on other data are not mixed with these.
    make : callable
        Makes the task of a trial from its seed.
    contenders : tuple of Contender
        The solvers that run.
    budget : Budget
        What each of them may spend on a trial.
    """

    name: str
    data: str
    make: Callable[[int], Task]
    contenders: tuple[Contender, ...]
    budget: Budget


@dataclass(frozen=True)
class Plan:
    """All that an experiment runs."""

    panels: tuple[Panel, ...]
    trials: int
    remarks: tuple[str, ...] = ()
    """Remarks for readers, printed above the tables."""
    extra: Any = None
    """Measurements other than runs."""


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper.

    Attributes
    ----------
    name : str
        Its name on the command line.
    title : str
        One line about it.
    shows : str
        Which figures and tables of the paper it is about.
    plan : callable
        What to run, given the options.
    figures : callable
        The figures by name, from the plan and the runs.
    tables : callable
        The tables, from the plan and the runs.
    """

    name: str
    title: str
    shows: str
    plan: Callable[[Options], Plan]
    figures: Callable[[Plan, Runs], dict[str, Figure]]
    tables: Callable[[Plan, Runs], list[Table]]
