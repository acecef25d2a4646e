"""SmartCPD: stochastic mirror descent on sampled fibers or nonzeros (Algorithm 1 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.factors import mode_cosines
from smartcpd._common.stacked import offsets, parts, stack
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.loop import Look, Loop, judged, unless_converged
from smartcpd._methods.merging import merged
from smartcpd._methods.smd_phase import Sweeper, entries_in_fibers, epoch_iterations
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import objective_of
from smartcpd._problem.history import Status
from smartcpd._problem.phases import Phase
from smartcpd._problem.stopping import change_since

WIDE_EPOCHS = 16
"""The most epochs that a start with surplus components runs before these are merged."""
LOOKS, LOOK_EPOCHS = 2, 8
"""The most times that new components are tried beside those found so far, and the epochs with and
without them.
"""
NEW_SHARE = 0.1
"""The size of all components that are tried, relative to a whole start."""
FAR_WORSE = 0.01
"""The share of what was gained from the start on that a look may lose for the moment."""
SAME = 0.8
"""Components with this product of cosines are the same one before and after such a trial."""
PATIENCE = 5
"""A phase that others follow ends when its best loss is this many epochs old; steps that have
gained nothing in as many epochs are shortened.
"""
LONG_PATIENCE = 20
"""Steps that follow others and did gain something are shortened when the best loss is this many
epochs old; those of the first phase shrink by themselves.
"""
LEG_ENTRIES = 20_000_000
"""Compiled code returns after about this many entries, so that Ctrl-C and time limits work."""
AVERAGING_POWER = 3.0
"""The larger, the shorter the tail that is averaged: about the last 1/(1 + power) of the run."""


class SampledDescent:
    """One run of the method: the loop of Algorithm 1, with what surrounds it."""

    kept = (
        "A",
        "average",
        "snapshots",
        "squares",
        "reached",
        "is_complete",
        "settled",
        "settled_at",
    )

    def __init__(self, task: Task) -> None:
        self.problem = problem = task.problem
        self.settings = settings = task.settings
        self.rng = task.rng
        self.tracker = Tracker(problem, settings, task.observe, task.rng)
        self.start = A = stack(task.start)
        objective = objective_of(problem.storage, problem.loss, settings.n_threads)
        # From a stream of its own, so that the fit does not depend on how it is watched.
        self.watch = objective.watch(A, task.rng.spawn(1)[0])
        self.squares: np.ndarray | None = None
        self.reached = 0  # the phase that the run is in
        self.is_complete = False
        self.settled: np.ndarray | None = None
        self.settled_at = np.inf
        self._begin_with(A)

    def solve(self) -> Result:
        tracker = self.tracker
        sweepers = [Sweeper(self.problem, p, self.settings) for p in self.problem.phases]
        wide = replace(self.problem, rank=self.A.shape[1])
        wide_sweepers = [Sweeper(wide, p, self.settings) for p in wide.phases]
        self.watch(self.average)

        def loop() -> Status:
            status = judged(tracker, self.row(self.problem.phases[0].step.name))
            if wide.rank > self.problem.rank:
                for number, sweeper in enumerate(wide_sweepers):
                    run = partial(self._run_wide, number, sweeper)
                    status = status or tracker.stage(run, self)
                status = status or tracker.stage(self._merge, self)
                if not sweepers[0].phase.step.needs_convex_part:
                    status = status or self._looked(sweepers[0], wide_sweepers[0])
            for sweeper in sweepers[self.reached :]:
                for pace in sweeper.phase.step.paces:
                    run = partial(self._run_phase, sweeper, pace)
                    status = status or tracker.stage(run, self)
            assert status is not None
            return status

        return tracker.follow(loop)

    def _begin_with(self, A: np.ndarray) -> None:
        self.A = A.astype(self.settings.dtype)
        self.average = A.copy()
        self.snapshots = 0
        self.tracker.begin_with(A)

    def _run_wide(self, number: int, sweeper: Sweeper) -> Status | None:
        """Epochs of a phase with more components than the rank, which are then merged.

        A phase that is over by then is not run again: Jensen steps that have levelled off with more
        components would do so with fewer.
        """
        n_epochs = min(WIDE_EPOCHS, self.settings.stopping.max_epochs // 4)
        if self.tracker.epoch >= n_epochs:
            return None
        self.reached = number
        self.squares = sweeper.start(self.A, self.rng, self.squares)
        name = f"{sweeper.phase.step.name}, {self.A.shape[1]} components"
        over = partial(self._is_over, sweeper.phase, n_epochs)
        return Epochs(self, sweeper, name, over).run(unless_converged)

    def _merge(self) -> None:
        self._go_on_with(merged(self.tracker.best, self.problem))

    def _is_over(self, phase: Phase, n_epochs: float = math.inf) -> bool:
        """Whether the epochs of a phase are over, or the loss changes as little as ends it."""
        tracker = self.tracker
        levels_off = (
            phase.until is not None
            and change_since(tracker.history, tracker.epoch - 1) < phase.until
        )
        return levels_off or tracker.epoch >= n_epochs

    def _looked(self, sweeper: Sweeper, wide_sweeper: Sweeper) -> Status | None:
        """Look for components that were missed, a few times.

        Not with Jensen steps: they are too slow to tell in a few epochs what new components are
        worth, and to settle again afterwards.
        """
        settle = partial(self._settle, sweeper)
        status = self.tracker.stage(settle, self)
        for look in range(LOOKS):
            run = partial(self._look_for_more, look, wide_sweeper)
            status = status or self.tracker.stage(run, self)
            status = status or self.tracker.stage(settle, self)
        return status

    def _settle(self, sweeper: Sweeper) -> Status | None:
        """Run the components that are left for a while; go back to those before them if these are
        far worse, which ends the looks.
        """
        if self._has_looked:
            return None
        self.squares = sweeper.start(self.A, self.rng, self.squares)
        end = self.tracker.epoch + LOOK_EPOCHS
        name = sweeper.phase.step.name
        epochs = Epochs(self, sweeper, name, lambda: self.tracker.epoch >= end)
        status = epochs.run(unless_converged)
        first = self.tracker.history[0]
        gained = first.loss + first.penalty - self.settled_at
        lost = self.tracker.best_objective - self.settled_at
        if self.settled is not None and lost > FAR_WORSE * gained:
            self._go_on_with(self.settled)
            self.is_complete = True
        self.settled = self.tracker.best.copy()
        self.settled_at = self.tracker.best_objective
        return status

    def _look_for_more(self, look: int, sweeper: Sweeper) -> Status | None:
        """Try new components beside those found so far, and merge them.

        A component that was missed, because another had split in two when they were merged, is
        found now that the others are nearly right.
        """
        if self._has_looked:
            return None
        before = self.tracker.best.copy()
        A = np.hstack([before, self._new_components(look)])
        self._go_on_with(A)
        self.squares = sweeper.start(self.A, self.rng, self.squares)
        end = self.tracker.epoch + LOOK_EPOCHS
        name = f"{sweeper.phase.step.name}, {A.shape[1]} components"
        epochs = Epochs(self, sweeper, name, lambda: self.tracker.epoch >= end)
        status = epochs.run(unless_converged)
        found = merged(self.tracker.best, self.problem)
        self.is_complete = _are_the_same(before, found, self.problem.shape)
        self._go_on_with(found)
        return status

    @property
    def _has_looked(self) -> bool:
        """Whether a further look for components would find nothing, or take too long."""
        too_late = 2 * (self.tracker.epoch + LOOK_EPOCHS) > self.settings.stopping.max_epochs
        return self.is_complete or too_late

    def _new_components(self, look: int) -> np.ndarray:
        """Columns of the start in combinations that it did not have, as small components."""
        width, n_new = self.start.shape[1], self.start.shape[1] - self.problem.rank
        shape = self.problem.shape
        shifted = [
            np.roll(part, mode * (look + 1), axis=1)[:, :n_new]
            for mode, part in enumerate(parts(self.start, shape))
        ]
        return np.concatenate(shifted) * (NEW_SHARE * width / n_new) ** (1 / len(shape))

    def _go_on_with(self, A: np.ndarray) -> None:
        self._begin_with(A)
        self.tracker.best_objective = self.watch(A).loss + self.tracker.penalty(A)

    def _run_phase(self, sweeper: Sweeper, pace: float) -> Status | None:
        """Epochs of one phase; None when the next phase, or shorter steps, should take over."""
        tracker = self.tracker
        self.squares = sweeper.start(self.A, self.rng, self.squares, pace)
        self.snapshots = 0
        tracker.restart()
        began = tracker.epoch
        is_last = pace == sweeper.phase.step.paces[-1]
        is_first = sweeper.phase == self.problem.phases[0]

        def over() -> bool:
            if sweeper.phase.until is not None:
                stuck = tracker.epoch - tracker.best_epoch >= PATIENCE
                return stuck or self._is_over(sweeper.phase)
            if is_last:
                return False
            if is_first:
                return not self._has_gained and tracker.epoch - began >= PATIENCE
            patience = LONG_PATIENCE if tracker.best_epoch > began else PATIENCE
            return tracker.epoch - tracker.best_epoch >= patience

        status = Epochs(self, sweeper, sweeper.phase.step.name, over).run(judged)
        if status is None:
            found = tracker.best_objective
            self._begin_with(tracker.best)
            tracker.best_objective = found
        return status

    @property
    def _has_gained(self) -> bool:
        """Whether any factors were better than those that the fit began with."""
        first = self.tracker.history[0]
        return bool(self.tracker.best_objective < first.loss + first.penalty)

    def run_epoch(self, sweeper: Sweeper) -> None:
        problem, n_fibers = self.problem, self.settings.n_fibers
        sweeper.fit_background(self.A, self.rng)
        for n_iterations in self._legs():
            modes = self._drawn_modes(n_iterations)
            draws = problem.sampler.draw(problem.storage, modes, n_fibers, self.rng)
            sweeper.run(draws, self.A)
            sizes = np.array(problem.shape)[modes]
            self.tracker.entries += int(sizes.sum()) * n_fibers + draws.events.size
            self.snapshots += 1
            self._update_average()
            if self.tracker.out_of_time:
                break
        self.tracker.epoch += 1

    def _drawn_modes(self, n_iterations: int) -> np.ndarray:
        """The mode of each draw of fibers; one mode stays for inner iterations on fresh fibers."""
        times = self.settings.inner_iterations if self.settings.fresh_fibers else 1
        modes = self.rng.integers(len(self.problem.shape), size=-(-n_iterations // times))
        return np.repeat(modes, times)[:n_iterations]

    def _legs(self) -> Iterator[int]:
        """The iterations of an epoch, in stretches short enough to interrupt."""
        problem = self.problem
        n_events = problem.sampler.n_events(problem.storage)
        in_fibers = entries_in_fibers(problem, self.settings)
        left = epoch_iterations(problem, self.settings)
        most = max(1, int(LEG_ENTRIES / max(n_events + in_fibers, 1)))
        while left > 0:
            yield min(left, most)
            left -= most

    def _update_average(self) -> None:
        """Average the tail of the run: recent factors count more, as a power of their age."""
        if self.settings.averaging:
            share = (AVERAGING_POWER + 1) / (self.snapshots + AVERAGING_POWER)
            self.average += share * (self.A - self.average)
        else:
            self.average[:] = self.A

    def row(self, phase: str) -> Look:
        """The factors that would be returned now, and their loss."""
        candidate = self._candidate()
        return Look(candidate, self.watch(candidate), phase)

    def _candidate(self) -> np.ndarray:
        """The factors that would be returned now: the average, inside the constraints."""
        if not self.settings.averaging or not self.snapshots:
            return self.average
        cuts = offsets(self.problem.shape)[1:-1]
        pieces = zip(
            self.problem.constraints,
            np.split(self.average, cuts),
            np.split(self.A, cuts),
            strict=True,
        )
        return np.concatenate([c.settle(average, last) for c, average, last in pieces])


@dataclass
class Epochs:
    """Epochs of one phase, until it is over."""

    descent: SampledDescent
    sweeper: Sweeper
    name: str
    over: Callable[[], bool]
    kept: ClassVar = ()

    def run(self, record: Any) -> Status | None:
        """The status that ended the fit, or None when another phase should take over."""
        tracker = self.descent.tracker
        ended = Loop(tracker, self, self.descent, self.sweeper, record=record).run()
        return ended if isinstance(ended, Status) else None

    def look(self) -> Look:
        self.descent.run_epoch(self.sweeper)
        return self.descent.row(self.name)

    def move(self) -> bool | None:
        return self.over() or None


def _are_the_same(A: np.ndarray, B: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether every component of one model is in the other."""
    alike = mode_cosines(parts(A, shape), parts(B, shape)).prod(axis=0)
    return bool(alike.max(axis=1).min() >= SAME)


def _run(task: Task) -> Result:
    """Fit by stochastic mirror descent."""
    return SampledDescent(task).solve()


smd = Method("smd", _run)
