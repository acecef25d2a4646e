"""The tracker of a run: its clock, its history, its best factors so far, and reasons to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from smartcpd._common.stacked import stack, unstack
from smartcpd._kernels.notices import working_clock
from smartcpd._kernels.uninterrupted import interrupts_recognised
from smartcpd._methods.base import Comparison, Epoch, Observer, Result, Settings, Task
from smartcpd._methods.merging import merged
from smartcpd._objectives import Estimate
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._objectives.kkt import relative_kkt_residual
from smartcpd._problem.history import Finding, History, Record, Status
from smartcpd._problem.problem import Problem
from smartcpd.errors import DivergedError

T = TypeVar("T")


class EndedError(Exception):
    """Raised to end a run in the middle of a step, with the reason."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.reason)
        self.status = status


class Tracker:
    """Follows a run from one row of its history to the next."""

    kept = (
        "history",
        "epoch",
        "entries",
        "elapsed",
        "ended",
        "best",
        "latest",
        "best_objective",
        "best_epoch",
        "restarted",
        "rng",
    )

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        observe: Observer,
        rng: np.random.Generator,
    ) -> None:
        self.problem = problem
        self.rng = rng
        self.settings = settings
        self.observe = observe
        self.history = History()
        self.epoch = 0
        self.entries = 0
        self.began = working_clock()
        self.spent = 0.0
        """Seconds that a fit had taken before this run, which is a part of it."""
        self.ended = self.stopped = False
        self.comparison: Comparison | None = None
        self.finding: Finding | None = None
        self._sample = CellSample(problem)

    @classmethod
    def of_passes(cls, task: Task) -> Tracker:
        """Make a tracker for full passes from one start, whose superfluous components are
        merged.
        """
        problem = task.problem
        tracker = cls(problem, task.settings.for_full_passes(), task.observe, task.rng)
        A = stack(task.start)
        tracker.begin_with(merged(A, problem) if A.shape[1] > problem.rank else A)
        return tracker

    def start_clock(self) -> None:
        """Start the clock, now that everything is compiled."""
        self.elapsed = self.spent

    def begin_with(self, A: np.ndarray) -> None:
        """Forget what was best before: from here on the factors have this shape."""
        self.best = A.copy()
        self.latest = self.best
        self.best_objective = math.inf
        self.best_epoch = self.epoch
        self.restart()

    def restart(self) -> None:
        """Compare the objective anew from here on."""
        self.restarted = len(self.history)

    @property
    def elapsed(self) -> float:
        """Seconds without those of compilation, in this process and in those before."""
        return working_clock() - self.began

    @elapsed.setter
    def elapsed(self, seconds: float) -> None:
        self.began = working_clock() - seconds

    @property
    def out_of_time(self) -> bool:
        limit = self.settings.stopping.max_time
        return limit is not None and self.elapsed >= limit

    def stage(self, compute: Callable[[], T], *others: Any) -> T:
        """Return what ``compute`` returns; a fit that is resumed does not compute it again.

        It may change this tracker, with the random numbers, and ``others``.
        """
        # A result that the user or the clock cut short is computed further if the fit is resumed.
        return self.settings.journal.stage(
            (self, *others), compute, lambda _: not (self.stopped or self.out_of_time)
        )

    @property
    def keeps(self) -> bool:
        """Whether anything is kept for a fit that may be resumed."""
        return self.settings.journal.path is not None

    def loop(self, *others: Any) -> Callable[[], None]:
        """Return a function to be called after each step of a loop that changes this tracker and
        ``others``.
        """
        return self.settings.journal.loop((self, *others))

    def follow(self, loop: Callable[[], Status], *others: Any) -> Result:
        """Start the clock and run a loop to its end, whatever ends it; see `stage`."""
        return self.stage(lambda: self._followed(loop), *others)

    def _followed(self, loop: Callable[[], Status]) -> Result:
        self.start_clock()
        try:
            with interrupts_recognised():
                status = loop()
        except EndedError as ended:
            status = ended.status
        except KeyboardInterrupt:
            status = self.interrupted()
        best = self.best if math.isfinite(self.best_objective) else self.latest
        if best.shape[1] > self.problem.rank:
            best = merged(best, self.problem)
        factors = unstack(best, self.problem.shape)
        return Result(
            factors,
            self.history,
            status,
            self.ended,
            comparison=self.comparison,
            finding=self.finding,
        )

    def check_time(self) -> None:
        """End a stretch without records when the user's time is over."""
        if self.out_of_time:
            if not self.history:
                self._remember(self.best, self._sample.estimate(self.best), "start")
            self.ended = True
            raise EndedError(self.settings.stopping.out_of_time(self.epoch))

    def penalty(self, A: np.ndarray) -> float:
        if not self.problem.penalises:
            return 0.0
        return self.problem.penalty(unstack(A, self.problem.shape))

    def record(self, A: np.ndarray, estimate: Estimate, phase: str) -> Status | None:
        """Remember a row, and the factors if they are the best; see whether to stop."""
        status = self._remember(A, estimate, phase) or self._status(A)
        # Only the user's limits end a fit here, besides its own criterion.
        self.ended = self.ended or (status is not None and not status.converged)
        return status

    def note(self, A: np.ndarray, estimate: Estimate, phase: str) -> None:
        """Remember a row like `record`, for solvers that judge their progress themselves: only a
        limit of the user's, or a loss that is not finite, ends the fit.
        """
        status = self._remember(A, estimate, phase) or self._kkt_status(A)
        limit = self.settings.stopping.limit(self.history)
        self.ended = self.ended or limit is not None
        status = status or limit
        if status is not None:
            raise EndedError(status)

    def _remember(self, A: np.ndarray, estimate: Estimate, phase: str) -> Status | None:
        loss, penalty = estimate.loss, self.penalty(A)
        if not math.isfinite(loss + penalty):
            return self._diverged()
        self.latest = A
        record = Record(
            self.elapsed, self.epoch, self.entries, loss, penalty, phase, estimate.error
        )
        self.history.append(record)
        # A model with other than the wanted number of components is seen but not kept.
        is_best = loss + penalty < self.best_objective and A.shape == self.best.shape
        if is_best:
            self.best_objective = loss + penalty
            self.best[:] = A
            self.best_epoch = self.epoch

        def now() -> list[np.ndarray]:
            return unstack(A, self.problem.shape)

        if self.observe(Epoch(record, now, is_best)):
            self.ended = self.stopped = True
            return Status(False, f"Stopped by the callback at epoch {self.epoch}.")
        return None

    def interrupted(self) -> Status:
        self.ended = self.stopped = True
        return Status(
            False,
            f"Interrupted at epoch {self.epoch}; this is the best model until then.",
            interrupted=True,
        )

    def _status(self, A: np.ndarray) -> Status | None:
        return self._kkt_status(A) or self.settings.stopping.status(
            self.history, self.restarted, lambda: self._sample.resolution(self.best)
        )

    def _kkt_status(self, A: np.ndarray) -> Status | None:
        stopping = self.settings.stopping
        if A.shape != self.best.shape or not stopping.kkt_due(self.history):
            return None
        residual = relative_kkt_residual(self.problem, A, self.settings.n_threads)
        return stopping.kkt_status(residual, self.epoch)

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
