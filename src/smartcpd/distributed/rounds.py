"""Rounds of updates that workers make on their own, and then put together.

This is expectation-maximisation in the form of Neal and Hinton: the expected counts of all data are
a sum of those of the shards. Each worker replaces its own share of them several times, the shares
of the others being what they were; its rows of the mode that was divided follow from its share
alone and stay where they are. Putting together is adding up, and what no update changes any more is
the same however many a round has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from smartcpd import losses
from smartcpd._common.stacked import offsets, stack
from smartcpd._methods.base import Method, Result, Task
from smartcpd._methods.expected_counts import serves
from smartcpd._methods.loop import Look, Loop, unless_converged
from smartcpd._methods.mixture import Mixture, unit_sums
from smartcpd._methods.tracker import Tracker
from smartcpd._objectives import Estimate
from smartcpd._problem.history import Status
from smartcpd._problem.problem import Problem
from smartcpd.distributed.worker import Held, LacksStateError, Shard, summed
from smartcpd.errors import IncompatibleError
from smartcpd.partitions.tensor import EventSum

LEAST_UPDATES = 2
"""Number of local updates after which rows are fetched and the loss is computed."""
SETTLED = 2e-4
"""Relative gain of so many updates below which full passes with extrapolation are faster."""
MOST_LOOKS = 12
MEASURED_LOOKS = 3
"""Number of measurements after which the number of local updates stays what it is."""
MOST_LOCAL = 64
COMMUNICATION = 0.2
"""The share of the time that communication may take."""


def updated(
    held: Held,
    number: int,
    totals: list[np.ndarray],
    updates: int,
    rows: np.ndarray | None,
    counts: np.ndarray | None,
    want_rows: bool,
    n_threads: int,
) -> tuple[float, np.ndarray, np.ndarray | None]:
    """Make some updates on a shard; return its loss before, and its expected counts after them.

    Its rows come third if they are wanted. ``totals`` are the expected counts of all shards for the
    other modes. ``rows`` and ``counts`` come along where the worker does not have those of the
    round before. They are as they were when rows were fetched last; there is one of ``totals`` for
    each round since, and what was lost is computed again.
    """
    row_range, state = held.shard.row_range, held.state
    if rows is not None and counts is not None:
        state.update(rows=rows, counts=counts)
    elif state.get("round") != number:
        raise LacksStateError
    P, S, value = state["rows"], state["counts"], 0.0
    others = _others(row_range.shape, row_range.mode)
    A = np.empty((sum(row_range.shape), P.shape[1]))
    wanted = EventSum(losses.get("poisson"), "surplus", want_gradient=True)
    for total in totals:
        rest = total - S
        for update in range(updates):
            A[others] = _unit_others(rest + S, row_range.shape, row_range.mode)
            A[row_range.local_rows] = P
            found = summed(held, wanted, A, n_threads)
            if update == 0:
                # The sum of the model over these rows: columns of the other modes sum to one.
                value = found.total + float(P.sum())
            expected = np.maximum(-A * found.gradient, 0.0)
            P, S = expected[row_range.local_rows], expected[others]
    held.state = {"rows": P, "counts": S, "round": number + 1}  # type: ignore[dict-item]
    return value, S, P if want_rows else None


def _others(shape: tuple[int, ...], mode: int) -> np.ndarray:
    """Return the stacked rows of all modes but one."""
    starts = offsets(shape)
    return np.concatenate([np.arange(starts[mode]), np.arange(starts[mode + 1], starts[-1])])


def _unit_others(counts: np.ndarray, shape: tuple[int, ...], mode: int) -> np.ndarray:
    return unit_sums(counts, tuple(size for n, size in enumerate(shape) if n != mode))


@dataclass
class Rounds:
    """The state of the rounds of a fit."""

    storage: Any
    tracker: Tracker
    A: np.ndarray
    """Stacked factors: columns that sum to one, but for the mode that was divided."""
    updates: int
    counts: dict[int, np.ndarray] = field(default_factory=dict)
    """The expected counts for the other modes, by the number of the shard."""
    values: list[float] = field(default_factory=list)
    number: int = 0
    kept: ClassVar = ("A", "updates", "values")

    def solve(self) -> Status:
        return Loop(self.tracker, self, record=unless_converged).run()

    def look(self) -> Look:
        """Some rounds; the row is of the factors before them."""
        before, self._traffic = self.A, replace(self.storage.pool.traffic)
        value = self._made_rounds()
        self.tracker.epoch += 1
        self.values.append(value)
        phase = f"{self.updates} local update{'s' * (self.updates > 1)} a round"
        return Look(before, Estimate(value), phase)

    def move(self) -> Status | None:
        """A status once rounds gain little, or there were many."""
        self._adapt(self._traffic)
        gain = self.values[-2] - self.values[-1] if len(self.values) > 1 else math.inf
        settled = gain < SETTLED * abs(self.values[-1])
        if not settled and len(self.values) < MOST_LOOKS:
            return None
        return Status(True, f"Rounds of local updates settled at epoch {self.tracker.epoch}.")

    def _made_rounds(self) -> float:
        """Some rounds, then the factors as they are after them; the loss before them."""
        n_rounds = max(1, LEAST_UPDATES // self.updates)
        self._before = dict(self.counts)
        self._since: list[np.ndarray] = []
        value, rows = math.nan, list[Any]()
        for k in range(n_rounds):
            found, rows = self._round(want_rows=k == n_rounds - 1)
            value = found if k == 0 else value
            self.tracker.entries += self.updates * self.storage.nnz
            self.tracker.check_time()
        A, mode = np.empty_like(self.A), self.storage.manifest.mode
        totals = self._totals()
        A[_others(self.storage.shape, mode)] = _unit_others(totals, self.storage.shape, mode)
        for shard, found_rows in zip(self.storage.pool.shards, rows, strict=True):
            A[shard.row_range.rows] = found_rows
        self.A = A
        return value / self.storage.n_observed

    def _round(self, want_rows: bool) -> tuple[float, list[Any]]:
        """The loss before a round, and the rows of shards after it if they are wanted."""
        totals = self._totals()
        self._since.append(totals)

        def with_state(shard: Shard) -> tuple[Any, ...]:
            share = self._share(shard, self._before)
            return self.number, self._since, self.updates, self._rows(shard), share, want_rows

        def without_state(shard: Shard) -> tuple[Any, ...]:
            return self.number, [totals], self.updates, None, None, want_rows

        known = with_state if self.number == 0 else without_state
        answers = self.storage.pool.ask(updated, known, with_state)
        for shard, (_, counts, _) in zip(self.storage.pool.shards, answers, strict=True):
            self.counts[shard.number] = counts
        self.number += 1
        return sum(value for value, _, _ in answers), [rows for _, _, rows in answers]

    def _rows(self, shard: Shard) -> np.ndarray:
        """Return the rows of a shard as they were fetched last."""
        return self.A[shard.row_range.rows]

    def _share(self, shard: Shard, counts: dict[int, np.ndarray]) -> np.ndarray:
        """Return the expected counts of a shard; before the first round, by the size of rows."""
        if shard.number in counts:
            return counts[shard.number]
        others = _others(self.storage.shape, self.storage.manifest.mode)
        return self.A[others] * self._rows(shard).sum(axis=0)

    def _totals(self) -> np.ndarray:
        """Add up the expected counts in the order of shards, whoever holds them."""
        first, *others = self.storage.pool.shards
        total = self._share(first, self.counts).copy()
        for shard in others:
            total += self._share(shard, self.counts)
        return total

    def _adapt(self, before: Any) -> None:
        """Choose as many updates a round as keep communication below its share of the time."""
        if self.storage.pool.cluster.local_updates != "auto" or len(self.values) > MEASURED_LOOKS:
            return
        if len(self.values) == 1:
            return  # the first round includes loading and compiling
        traffic = self.storage.pool.traffic.since(before)
        update = traffic.computed / max(traffic.rounds * self.updates, 1)
        communication = (traffic.seconds - traffic.computed) / max(traffic.rounds, 1)
        wanted = (1 / COMMUNICATION - 1) * communication / max(update, 1e-9)
        self.updates = min(MOST_LOCAL, 1 << max(0, math.ceil(math.log2(max(wanted, 1.0)))))


def suits(problem: Problem) -> bool:
    """Whether expected counts of shards add up: under loss poisson, without weights."""
    storage: Any = problem.storage
    return (
        storage.absent == "zero"
        and not storage.weighted
        and serves(problem)
        and problem.loss.divergence == 1.0
    )


def _check(problem: Problem) -> None:
    if not suits(problem):
        raise IncompatibleError(
            "Solver 'rounds' serves counts under loss poisson, without weights, on a cluster; got "
            f"{problem}. Use solver='auto'."
        )


def _run(task: Task) -> Result:
    problem = task.problem
    storage: Any = problem.storage
    tracker = Tracker.of_passes(task)
    mixture = Mixture.of(tracker.best, problem.shape)
    A, rows = mixture.columns.copy(), offsets(problem.shape)
    mode = storage.manifest.mode
    A[rows[mode] : rows[mode + 1]] *= mixture.weights
    tracker.begin_with(stack([A]))
    chosen = storage.pool.cluster.local_updates
    rounds = Rounds(storage, tracker, A, 1 if chosen == "auto" else int(chosen))
    result = tracker.follow(rounds.solve)
    storage.pool.local_updates = rounds.updates
    return result


rounds = Method("rounds", _run, _check, reads_parts=True)
