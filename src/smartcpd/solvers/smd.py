"""SmartCPD: stochastic mirror descent on sampled fibers (Algorithm 1 of the paper)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from smartcpd.errors import DivergedError
from smartcpd.history import History, Record, Status
from smartcpd.kkt import relative_kkt_residual
from smartcpd.model import CPModel
from smartcpd.monitor import Monitor
from smartcpd.objective import Objective
from smartcpd.problem import Problem
from smartcpd.sampling import Uniform
from smartcpd.solvers.base import Observer, Report, Result, Settings
from smartcpd.solvers.merging import merged
from smartcpd.solvers.sweeper import Sweeper
from smartcpd.stack import offsets, stack, unstack
from smartcpd.stopping import change_since

MIN_ITERATIONS = 100
"""An epoch has at least this many iterations, or a tiny tensor would spend its time on checks."""
WIDE_EPOCHS = 16
"""How long a start with more components than the rank runs before they are merged, at most."""
PATIENCE = 5
"""A phase that others follow ends when its best loss is this many epochs old."""
LEG_ENTRIES = 20_000_000
"""Compiled code returns after about this many entries, so that Ctrl-C and time limits work."""
AVERAGING_POWER = 3.0
"""The larger, the shorter the tail that is averaged: about the last 1/(1 + power) of the run."""


class Run:
    """One run of the method: the loop of Algorithm 1, with what surrounds it."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        start: list[np.ndarray],
        rng: np.random.Generator,
        observe: Observer,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.rng = rng
        self.observe = observe
        self.monitor = Monitor(
            Objective(problem.storage, problem.loss, settings.n_threads), problem, rng
        )
        self.history = History()
        self.entries = 0
        self.epoch = 0
        self._begin_with(stack(start))

    def solve(self) -> Result:
        sweepers = [Sweeper(self.problem, p, self.settings) for p in self.problem.phases]
        wide = replace(self.problem, rank=self.A.shape[1])
        wide_sweeper = Sweeper(wide, wide.phases[0], self.settings)
        self.monitor.loss(self.average)
        # Everything is compiled now, so the clock can start.
        self.began = time.perf_counter()
        try:
            status = self._record(self.problem.phases[0].step.name)
            if wide.rank > self.problem.rank:
                status = status or self._narrow(wide_sweeper)
            for sweeper in sweepers:
                status = status or self._run_phase(sweeper)
        except KeyboardInterrupt:
            status = Status(
                False,
                f"Interrupted at epoch {self.epoch}; this is the best model until then.",
                interrupted=True,
            )
        assert status is not None
        best = (
            self.best
            if self.best.shape[1] == self.problem.rank
            else merged(self.best, self.problem)
        )
        return Result(unstack(best, self.problem.shape), self.history, status)

    def _begin_with(self, A: np.ndarray) -> None:
        self.A = A.astype(self.settings.dtype)
        self.average = A.copy()
        self.best = A.copy()
        self.best_objective = math.inf
        self.best_epoch = self.epoch
        self.snapshots = 0
        self.restarted = len(self.history)

    def _narrow(self, sweeper: Sweeper) -> Status | None:
        """Run a start with more components than the rank for a while, and merge them."""
        width = self.A.shape[1]
        sweeper.start(self.A, self.rng)
        n_epochs = min(WIDE_EPOCHS, self.settings.stopping.max_epochs // 4)
        status = None
        while status is None and self.epoch < n_epochs:
            self._run_epoch(sweeper)
            status = self._record(f"{sweeper.phase.step.name}, {width} components")
            if status is not None and status.converged:
                status = None  # no settled loss ends a fit before its components are merged
        self._begin_with(merged(self.best, self.problem))
        self.best_objective = self.monitor.loss(self.best) + self.monitor.penalty(self.best)
        return status

    def _run_phase(self, sweeper: Sweeper) -> Status | None:
        """Epochs of one phase; None when the next phase should take over."""
        sweeper.start(self.A, self.rng)
        self.snapshots = 0
        self.restarted = len(self.history)
        scale = abs(self.history[0].loss)
        while True:
            self._run_epoch(sweeper)
            status = self._record(sweeper.phase.step.name)
            if status is not None:
                return status
            until = sweeper.phase.until
            if until is not None:
                settled = change_since(self.history, self.epoch - 1) < until * scale
                if settled or self.epoch - self.best_epoch >= PATIENCE:
                    self._begin_with(self.best)
                    return None

    def _run_epoch(self, sweeper: Sweeper) -> None:
        for n_iterations in self._legs():
            draws = Uniform().draw(
                self.problem.shape, n_iterations, self.settings.n_fibers, self.rng
            )
            sweeper.run(draws, self.A)
            sizes = np.array(self.problem.shape)[draws.modes]
            self.entries += int(sizes.sum()) * self.settings.n_fibers
            self.snapshots += 1
            self._update_average()
            if self._out_of_time():
                break
        self.epoch += 1

    def _legs(self) -> Iterator[int]:
        """The iterations of an epoch, in stretches short enough to interrupt."""
        per_iteration = self.settings.n_fibers * sum(self.problem.shape) / len(self.problem.shape)
        left = max(MIN_ITERATIONS, math.ceil(self.problem.storage.n_cells / per_iteration))
        most = max(1, int(LEG_ENTRIES / per_iteration))
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

    def _out_of_time(self) -> bool:
        limit = self.settings.stopping.max_time
        return limit is not None and time.perf_counter() - self.began >= limit

    def _record(self, phase: str) -> Status | None:
        """Evaluate, remember the best, tell the observer, and see whether to stop."""
        candidate = self._candidate()
        loss, penalty = self.monitor.loss(candidate), self.monitor.penalty(candidate)
        if not math.isfinite(loss + penalty):
            return self._diverged()
        elapsed = time.perf_counter() - self.began
        record = Record(elapsed, self.epoch, self.entries, loss, penalty, phase)
        self.history.append(record)
        if loss + penalty < self.best_objective:
            self.best_objective = loss + penalty
            self.best[:] = candidate
            self.best_epoch = self.epoch
        if self.observe(Report(record, self._model)):
            return Status(False, f"Stopped by the callback at epoch {self.epoch}.")
        stopping = self.settings.stopping
        if stopping.kkt_due(self.history):
            residual = relative_kkt_residual(self.problem, candidate, self.settings.n_threads)
            status = stopping.kkt_status(residual, self.epoch)
            if status is not None:
                return status
        return stopping.status(
            self.history, self.restarted, lambda: self.monitor.resolution(self.best)
        )

    def _diverged(self) -> Status:
        advice = "Shorten the steps, or use step='adagrad' and mirror='auto'."
        if math.isinf(self.best_objective):
            raise DivergedError(
                f"The loss '{self.problem.loss}' is not finite at the start. {advice}"
            )
        return Status(
            False,
            f"Diverged: the loss became infinite or NaN at epoch {self.epoch}; this is the best "
            f"model until then. {advice}",
        )

    def _candidate(self) -> np.ndarray:
        """The factors that would be returned now: the average, inside the constraints."""
        if not self.settings.averaging or not self.snapshots:
            return self.average
        cuts = offsets(self.problem.shape)[1:-1]
        parts = zip(
            self.problem.constraints,
            np.split(self.average, cuts),
            np.split(self.A, cuts),
            strict=True,
        )
        return np.concatenate([c.settle(average, last) for c, average, last in parts])

    def _model(self) -> CPModel:
        factors = unstack(self._candidate(), self.problem.shape)
        return CPModel(factors, loss_function=self.problem.loss)


def smd(
    problem: Problem,
    settings: Settings,
    start: list[np.ndarray],
    rng: np.random.Generator,
    observe: Observer,
) -> Result:
    """Fit by fiber-sampled stochastic mirror descent."""
    return Run(problem, settings, start, rng, observe).solve()
