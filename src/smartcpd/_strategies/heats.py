"""Races between starts in the problem's own loss, on a part of the data where it is large.

A start is random and wide; a few steps, a merge to the rank and a few steps more tell which are
worth going on with. Rows of every mode are drawn for each race, so that what two races find shares
neither a start nor a sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from smartcpd._common.stacked import stack, unstack
from smartcpd._data.storage import Dense
from smartcpd._methods.base import Epoch
from smartcpd._methods.descents import Candidate, Descents
from smartcpd._methods.tracker import Tracker
from smartcpd._problem.problem import Problem
from smartcpd._strategies.starts import random_factors
from smartcpd._strategies.subtensor import Extension, Subtensor

PART_CELLS = 1 << 17
"""Number of cells of the part that a race is run on, unless components need more."""
MUCH = 3
"""A tensor that is so many times as large as a part is worth being extended to."""
WIDTH, WIDE_STEPS = 1.5, 20
"""Number of components of a start, relative to the rank, and of its steps before the merge."""
HEAT_STEPS = 20
"""Number of steps before the first comparison; each further one comes after so many more than the
one before, and half of the starts go on."""
LAST_STEPS = 200
"""Number of steps of the winner of a race on a part, at the most."""
MOST_STARTS, MOST_ON_ALL = 32, 3
"""The largest number of starts of a race on a part, and of one on all data, where each costs about
half of a run that goes to its end: then further runs find more than larger races."""


@dataclass(frozen=True)
class Heats:
    """Races between random starts for one problem."""

    problem: Problem
    descents: Descents
    rng: np.random.Generator

    def winner(self, effort: int, phase: str) -> np.ndarray:
        """Stacked factors of the best of some starts: as many as take the time of ``effort``
        starts on all data.
        """
        part = Subtensor.of(self.problem.stored_as(Dense), self.problem.rank, PART_CELLS, self.rng)
        ratio = self.problem.storage.n_cells // math.prod(len(rows) for rows in part.rows)
        if ratio < MUCH:
            n_starts = min(effort, MOST_ON_ALL)
            return race(self.problem, self.descents, n_starts, phase, self.rng).A
        return self._won_on(part, min(effort * ratio, MOST_STARTS), phase)

    def _won_on(self, part: Subtensor, n_starts: int, phase: str) -> np.ndarray:
        """Return the winner of a race on a part of the data, extended to all rows."""
        whole = self.descents.tracker
        extension = Extension(self.problem, part, whole, self.descents.region, self.rng)
        storage = self.problem.stored_as(Dense).gathered(part.rows, self.problem.loss)
        problem = replace(self.problem, storage=storage)

        def observe(epoch: Epoch) -> object:
            """Show the user where the race is; what it sees is no loss of the whole."""
            record = epoch.record._replace(phase=f"{part.name}: {epoch.record.phase}")
            return whole.observe(
                Epoch(record, lambda: extension.filled(epoch.factors()), is_best=False)
            )

        tracker = Tracker(problem, whole.settings, observe, self.rng)
        tracker.elapsed = whole.elapsed
        descents = Descents(problem, whole.settings, tracker, self.rng)
        tracker.begin_with(descents.inside(stack(random_factors(problem, problem.rank, self.rng))))
        best = race(problem, descents, n_starts, phase, self.rng)
        best = descents.run(best.A, phase, most=LAST_STEPS)
        whole.entries += tracker.entries
        whole.epoch += math.ceil(tracker.entries / self.problem.storage.n_cells)
        whole.check_time()
        A = extension.to_all_rows(unstack(best.A, problem.shape))
        return self.descents.floored(A)


def race(
    problem: Problem, descents: Descents, n_starts: int, phase: str, rng: np.random.Generator
) -> Candidate:
    """The best of some starts: all make some steps, some make more, until one is left."""
    field = [_begun(problem, descents, phase, rng) for _ in range(n_starts)]
    steps = HEAT_STEPS
    while len(field) > 1:
        steps += HEAT_STEPS
        field = sorted(field, key=lambda each: each.loss)[: len(field) // 2]
        field = [descents.run(each.A, phase, most=steps, rough=True) for each in field]
    return field[0]


def _begun(problem: Problem, descents: Descents, phase: str, rng: np.random.Generator) -> Candidate:
    """A random start after its first steps: wide ones, a merge, and some more."""
    wide = stack(random_factors(problem, math.ceil(WIDTH * problem.rank), rng))
    phase_of_wide = f"{phase}, {wide.shape[1]} components"
    found = descents.run(descents.inside(wide), phase_of_wide, most=WIDE_STEPS, rough=True)
    return descents.run(descents.reduced(found.A), phase, most=HEAT_STEPS, rough=True)
