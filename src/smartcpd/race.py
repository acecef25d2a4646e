"""Several starts of one fit: all run a little, the best run on, the lowest loss is kept."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from smartcpd.objectives import Objective, objective_of
from smartcpd.problem import Problem
from smartcpd.repair import flaws, repaired
from smartcpd.solvers import Observer, Relay, Report, Result, Settings, Solver
from smartcpd.stack import stack

HEATS = 20
"""Epochs after which starts are compared for the first time."""
SURVIVORS = 3
"""One of so many runs on, at least two."""
MOST_REPAIRS = 2


@dataclass
class Racers:
    """The starts of one fit. Which of them is best does not depend on how many run at a time."""

    problem: Problem
    settings: Settings
    solver: Solver
    n_jobs: int
    observe: Observer
    repairs: Solver | None = None
    """What goes on from a model whose flawed components were replaced, if that is wanted."""
    stop: threading.Event = field(default_factory=threading.Event)

    def best(
        self, starts: list[list[np.ndarray]], streams: list[np.random.Generator]
    ) -> tuple[Result, float]:
        """The result with the lowest objective, and its loss."""
        relays = [Relay(self.settings, self._observe) for _ in starts]
        legs = list(zip(relays, starts, streams, strict=True))
        n_survivors = max(2, math.ceil(len(starts) / SURVIVORS))
        if len(starts) <= n_survivors or self.settings.stopping.max_epochs <= HEATS:
            results = self._run(legs, self.settings.given_start, None)
        else:
            results = self._run(legs, self.settings.given_start, HEATS)
            if not any(r.status.interrupted for r in results):
                order = np.argsort([self._objective(r) for r in results], kind="stable")
                legs = [(relays[k], results[k].factors, streams[k]) for k in order[:n_survivors]]
                results = self._run(legs, True, None)
        result = min(results, key=self._objective)
        if self.repairs is not None:
            result = self._repaired(result, self.repairs, streams[0])
        return result, self._loss(result)

    def _repaired(self, result: Result, solver: Solver, rng: np.random.Generator) -> Result:
        """The result without dead and doubled components, if it is better for that."""
        for _ in range(MOST_REPAIRS):
            found = flaws(result.factors)
            if not result.status.converged or not found.can_be_repaired:
                break
            start = repaired(result.factors, found, self._exact, rng)
            relay = Relay(self.settings, self._observe, result.history)
            again = relay.run(
                solver, self.problem, start, rng, given_start=True, prefix="repaired: "
            )
            if self._objective(again) >= self._objective(result):
                return result
            result = again
        remark = str(flaws(result.factors))
        if remark:
            reason = f"{result.status.reason} {remark}"
            result = replace(result, status=result.status._replace(reason=reason))
        return result

    def _run(
        self,
        legs: Sequence[tuple[Relay, list[np.ndarray], np.random.Generator]],
        given_start: bool,
        most_epochs: int | None,
    ) -> list[Result]:
        def run(relay: Relay, start: list[np.ndarray], rng: np.random.Generator) -> Result:
            return relay.run(
                self.solver,
                self.problem,
                start,
                rng,
                given_start=given_start,
                most_epochs=most_epochs,
            )

        if self.n_jobs == 1 or len(legs) == 1:
            return self._in_turn(run, legs)
        return self._side_by_side(run, legs)

    @staticmethod
    def _in_turn(run: Callable[..., Result], legs: Sequence[Any]) -> list[Result]:
        """An interrupt skips the legs that wait."""
        results = []
        for leg in legs:
            results.append(run(*leg))
            if results[-1].status.interrupted:
                break
        return results

    def _side_by_side(self, run: Callable[..., Result], legs: Sequence[Any]) -> list[Result]:
        """An interrupt ends the legs that run and skips those that wait."""
        with ThreadPoolExecutor(self.n_jobs if self.n_jobs > 0 else os.cpu_count()) as pool:
            futures = [pool.submit(run, *leg) for leg in legs]
            try:
                wait(futures)
            except KeyboardInterrupt:
                self.stop.set()
                for future in futures:
                    future.cancel()
            return [future.result() for future in futures if not future.cancelled()]

    def _observe(self, report: Report) -> Any:
        return self.observe(report) or self.stop.is_set()

    def _objective(self, result: Result) -> float:
        return self._loss(result) + self.problem.penalty(result.factors)

    def _loss(self, result: Result) -> float:
        return self._exact.estimate(stack(result.factors)).loss

    @property
    def _exact(self) -> Objective:
        return objective_of(self.problem.storage, self.problem.loss, self.settings.n_threads)
