"""The plan of a fit: which solver runs, from how many starts, and what follows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from smartcpd._fitting.model import CPModel
from smartcpd._fitting.settings import settings_of
from smartcpd._methods.base import Method, Observer, Settings
from smartcpd._methods.lbfgs import lbfgs
from smartcpd._methods.md import md
from smartcpd._methods.mm import mm
from smartcpd._problem.checkpoints.journal import Journal
from smartcpd._problem.problem import Problem
from smartcpd._strategies import registry, warm_starts
from smartcpd._strategies.auto import choice, from_a_start
from smartcpd._strategies.base import Strategy
from smartcpd._strategies.informed import informed_start
from smartcpd._strategies.restarts import Restarts, Scored
from smartcpd._strategies.starts import make_start, with_more_components
from smartcpd._strategies.tiled import tiled

PLAIN_RUNS = 4
"""Number of starts that are compared where some entries of the factors are known or some modes
share a factor: strategies that merge and replace components would not leave these alone.
"""


@dataclass(frozen=True)
class Plan:
    """All that is decided before a fit begins to run."""

    problem: Problem
    settings: Settings
    solver: Strategy | Method
    reason: str
    """Why this solver."""
    init: Any
    """Where the runs start: "random", the name of a method, a model, or factors."""
    n_runs: int
    repairs: Method | None
    """The method that goes on after flawed components were replaced, if they are to be."""
    whole: bool
    """Whether every start is run to its end, because the starts will be compared."""

    @classmethod
    def of(cls, problem: Problem, parameters: Mapping[str, Any]) -> Plan:
        """Decide how a problem is fitted; ``parameters`` are all of those of a fit."""
        settings = settings_of(problem, parameters)
        init, consensus = parameters["init"], bool(parameters["consensus"])
        repairs = None
        solver, reason = registry.get(parameters["solver"]), "your choice"
        ours = solver is None
        if solver is None:
            solver, reason = choice(problem, settings)
            # Repairs would replace what is known or shared; of tiled data, they would take longer
            # than the fit.
            if not problem.needs_plain_descents and solver is not tiled:
                repairs, _ = from_a_start(solver, "", problem)
        registry.check(solver, problem)
        if _is_warm(init):
            warm_starts.check(init, problem)
        n_runs = parameters["n_init"]
        if isinstance(solver, Strategy) and solver.compares_starts and not _is_warm(init):
            n_runs = n_runs if consensus else 1
        # Descents from one start each find a solution, and not the best, where penalties make
        # several.
        several = problem.needs_plain_descents or (ours and solver in (lbfgs, md))
        if several and parameters["n_init"] == 1 and _is_random(init):
            n_runs = max(1, math.ceil(parameters["effort"] * PLAIN_RUNS))
        if not _is_random(init):
            solver, reason = from_a_start(solver, reason, problem)
        return cls(problem, settings, solver, reason, init, n_runs, repairs, consensus)

    @property
    def _settles(self) -> bool:
        """Whether the rows of the first mode are made exact at the end.

        A fit without effort is to be compared, and need not be exact; but multiplicative passes
        creep, and their rows show whether they are done.
        """
        quick = self.settings.effort == 0 and self.repairs is not mm
        return self.repairs is not None and not self.settings.stochastic and not quick

    def kept_in(self, journal: Journal) -> Plan:
        """Return the same plan, with a record of its completed stages."""
        return replace(self, settings=replace(self.settings, journal=journal))

    def run(self, rng: np.random.Generator, n_jobs: int, observe: Observer) -> Scored:
        """Run it, and return the best result of its starts."""
        init = self.init
        if isinstance(init, CPModel):
            init = init.distribute().factors
            if self.init.rank < self.problem.rank:
                init = with_more_components(self.problem, init, rng)
        streams = rng.spawn(self.n_runs)
        starts = [
            None
            if isinstance(self.solver, Strategy)
            else make_start(self.problem, init, self.settings.overcomplete, stream)
            for stream in streams
        ]
        plain = self.problem.needs_plain_descents and _is_random(init) and not self.whole
        if plain and self.n_runs > 1 and starts[0] is not None:
            stream = rng.spawn(1)[0]
            informed = informed_start(self.problem, self.settings, stream, starts[0])
            if informed is not None:
                starts, streams = [informed, *starts], [stream, *streams]
        restarts = Restarts(
            self.problem,
            self.settings,
            self.solver,
            n_jobs,
            observe,
            init if _is_warm(init) else None,
            self.repairs,
            settles=self._settles,
            whole=self.whole,
            own_start=_is_random(init) or _is_warm(init),
        )
        return restarts.best(starts, streams)


def _is_random(init: Any) -> bool:
    """Whether the user left it open where to start."""
    return isinstance(init, str) and init == "random"


def _is_warm(init: Any) -> bool:
    """Whether a method, given by its name, improves a random start first."""
    return isinstance(init, str) and init in warm_starts.EPOCHS
