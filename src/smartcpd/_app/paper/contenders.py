"""The solvers of an experiment: a task goes in, what the solver had at which second comes out.

The factors that a solver has on its way are kept as they are, and judged after it has ended: no
error of the factors, and no loss that only the figure needs, is on its clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smartcpd._data.storage import SparseTensor
from smartcpd._estimator import SmartCPD
from smartcpd._fitting.fit import Report
from smartcpd._methods.gcp_adam import GCPAdam

Factors = list[np.ndarray]

SPACING = 1.12
"""Each snapshot is later than the one before by at least this factor: axes are logarithmic."""
FIRST_SECOND = 1e-4
WHOLE_FIT = 60.0
"""Seconds to warm up a solver whose last stages are reached only by a fit that is not cut short."""


@dataclass(frozen=True)
class Task:
    """A data set to be decomposed, and the time for it."""

    X: np.ndarray | SparseTensor
    rank: int
    loss: str
    truth: Factors | None = None
    constraint: str = "auto"
    n_fibers: int | None = None
    """Fibers that an iteration of stochastic mirror descent reads; twice the rank by default."""
    start: Factors | None = None
    """The factors from which the paper's method and its rivals begin; by default a random start of
    the solver's own.
    """
    seed: int = 0
    limit: float | None = None

    @property
    def is_dense(self) -> bool:
        return isinstance(self.X, np.ndarray)

    @property
    def n_entries(self) -> int:
        """Number of entries that an iteration of the paper's method reads; rivals that sample get
        as many.
        """
        return (self.n_fibers or 2 * self.rank) * max(self.X.shape)


@dataclass(frozen=True)
class Snapshot:
    """The result that a solver had after some seconds; a peer may tell the loss but not the
    factors.
    """

    time: float
    entries: float
    epoch: int
    loss: float
    factors: Factors | None


@dataclass(frozen=True)
class Contender:
    """A solver with settings, which is a line of a figure.

    Attributes
    ----------
    name : str
        The name in the figure.
    settings : str
        What was set, for the table; runs with other settings are not mixed with these.
    run : callable
        Takes a task, returns snapshots, the last of which is the result.
    reference : bool
        Whether it is a limit to compare with, not a competitor.
    warm_up_seconds : float
        Seconds after which a run has compiled all that it needs; 0 if it compiles nothing.
    """

    name: str
    settings: str
    run: Callable[[Task], list[Snapshot]]
    reference: bool = False
    warm_up_seconds: float = 0.02

    def warm_up(self, task: Task) -> None:
        """Compile what a run needs."""
        if self.warm_up_seconds:
            self.run(replace(task, limit=self.warm_up_seconds))


@dataclass
class Watch:
    """A callback that keeps what the fit would return if it were stopped, at moments that are
    evenly spaced in the logarithm of time.
    """

    rank: int
    snapshots: list[Snapshot] = field(default_factory=list)
    due: float = 0.0
    loss: float = math.inf
    factors: Factors | None = None

    def __call__(self, report: Report) -> None:
        record = report.record
        if report.is_best:
            model = report.model()
            if model.rank == self.rank:
                self.loss, self.factors = record.loss, model.factors
        if record.time >= self.due and self.factors is not None:
            self.due = max(record.time, FIRST_SECOND) * SPACING
            row = (record.time, record.entries, record.epoch, self.loss)
            self.snapshots.append(Snapshot(*row, self.factors))

    def ended(self, fit: SmartCPD) -> list[Snapshot]:
        last = fit.history_[-1]
        final = Snapshot(last.time, last.entries, last.epoch, fit.loss_, fit.factors_)
        return [s for s in self.snapshots if s.time < last.time] + [final]


def ours(
    name: str,
    settings: str,
    parameters: Callable[[Task], dict[str, Any]] = lambda task: {},
    **flags: Any,
) -> Contender:
    """Make a contender from a fit of this package; ``parameters`` returns those of `SmartCPD` for a
    task.
    """

    def run(task: Task) -> list[Snapshot]:
        watch = Watch(task.rank)
        fit = SmartCPD(
            task.rank,
            task.loss,
            constraint=task.constraint,
            random_state=task.seed,
            max_time=task.limit,
            callback=watch,
            progress=False,
            **parameters(task),
        ).fit(task.X)
        if fit.status_.interrupted:
            # What an interrupted fit has found is no result to compare.
            raise KeyboardInterrupt
        return watch.ended(fit)

    return Contender(name, settings, run, **flags)


def single(task: Task, solver: Any, **choices: Any) -> dict[str, Any]:
    """Return the parameters of a solver that runs once, from the task's start if it has one, and
    with no more components than wanted.
    """
    start = {} if task.start is None else {"init": task.start}
    return {"solver": solver, "overcomplete": 1, **start, **choices}


def smartcpd(name: str = "SmartCPD", **choices: Any) -> Contender:
    """Make a contender of the paper's Algorithm 1 alone."""
    given = {"mirror": "entropy", "step": "adagrad(b=1e-5)", **choices}

    def parameters(task: Task) -> dict[str, Any]:
        fixed = {"averaging": False, "sampler": "uniform", "n_fibers": task.n_fibers}
        return single(task, "smd", **fixed, **given)

    words = ", ".join(f"{key} {value}" for key, value in given.items())
    return ours(name, f"the paper's Algorithm 1: solver smd, {words}, one start", parameters)


def smartcpd_defaults() -> Contender:
    return ours(
        "smd, our defaults",
        "solver smd with tail averaging and 1.5 R components at first",
        lambda task: {"solver": "smd", "n_fibers": task.n_fibers},
    )


def auto() -> Contender:
    return ours("auto (our default)", "solver auto", warm_up_seconds=WHOLE_FIT)


def gcp_opt(rate: float) -> Contender:
    """Make a contender of Adam on sampled entries: as many of dense data as the paper's method
    samples; of sparse data the solver's own number, with which it was faster.
    """

    def parameters(task: Task) -> dict[str, Any]:
        n_samples = task.n_entries if task.is_dense else None
        return single(task, GCPAdam(rate=rate, n_samples=n_samples).solver())

    return ours(
        "GCP-OPT",
        f"solver gcp-adam, rate {rate:g}; of dense data as many entries an iteration as SmartCPD "
        "reads, of sparse data stratified and as many as suit it best",
        parameters,
    )


def ggn() -> Contender:
    return ours("GGN", "solver ggn", lambda task: single(task, "ggn"))


def block_md() -> Contender:
    return ours("block MD", "solver md, full gradients", lambda task: single(task, "md"))


def from_truth() -> Contender:
    """Make the reference line, the optimum next to the true factors: no method can do better."""
    return ours(
        "limit (from the truth)",
        "solver auto, started at the true factors",
        lambda task: {"init": task.truth},
        reference=True,
        warm_up_seconds=WHOLE_FIT,
    )
