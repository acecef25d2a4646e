"""Models of other ranks on cells that they did not see, each begun at the model in question.

A refit from the model in question is near its optimum at once, and one with fewer or more
components starts from what that model already knows. Held-out cells are looked at amid a refit,
after 2, 4, 8 ... passes, and it ends as soon as its question is answered. None is run longer than
allowed: what was cut short is not judged, so that a verdict is held back, never made up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from smartcpd._common import threads
from smartcpd._common.stacked import parts, stack, unstack
from smartcpd._fitting.fit import fit
from smartcpd._fitting.model import CPModel
from smartcpd._fitting.settings import make_settings
from smartcpd._inference.selection.folds import Fold
from smartcpd._inference.selection.scores import Mean, mean_over
from smartcpd._kernels.notices import compilation, working_clock
from smartcpd._methods.merging import merged
from smartcpd._objectives import objective_of
from smartcpd._objectives.cell_sample import CellSample
from smartcpd._problem.problem import Problem
from smartcpd._strategies.auto import choice, from_a_start
from smartcpd.errors import DivergedError
from smartcpd.quality.deviance import best_constant

TOL = 0.2
MOST_PASSES = 128
FIRST_LOOK = 2
"""The pass after which held-out cells are looked at first; then after every doubling."""
POWER_ROUNDS, CANDIDATES = 2, 6
"""Rounds over the modes in which new components turn to where the residuals ask for them, and the
least number of those that are tried."""
NEW_SHARE = 0.1
"""The size that such a component begins with, as a share of the median size."""
PRUNING_ROUNDS = 4
"""Rounds in which components are left out; those of a round are judged one by one."""
SHARE_OF_FIT, LEAST_SECONDS = 1 / 3, 0.75
"""The time that the check may take: this share of the time of the fit, or so many seconds of the
processors together, whichever is more; the latter only up to the same share of all that the process
has done so far, so that a command for a small table is not held up."""
TINY = 1e-300


class Clock:
    """Tells when time is up. A short time is counted in seconds of the processors, so that a busy
    machine does not change a verdict.
    """

    def __init__(self, fit_seconds: float) -> None:
        self._wall = working_clock() + SHARE_OF_FIT * fit_seconds
        self._busy = self._processors() + least_seconds(time.process_time())

    @property
    def over(self) -> bool:
        return working_clock() >= self._wall and self._processors() >= self._busy

    @staticmethod
    def _processors() -> float:
        """Seconds of the processors without those of compilation, which a second run has not."""
        return time.process_time() - compilation.so_far


def least_seconds(so_far: float) -> float:
    """Return the seconds of the processors that the check may take, however short the fit was,
    after so many of the process.
    """
    return min(LEAST_SECONDS, SHARE_OF_FIT * so_far)


@dataclass(frozen=True, eq=False)
class Look:
    """What is seen of a model of the cells that are not held out."""

    losses: np.ndarray
    """The losses of the cells that are."""
    training_loss: float


@dataclass(frozen=True, eq=False)
class Trial(Look):
    """The model at the end of a refit."""

    factors: list[np.ndarray]
    cut: bool
    """Whether it ended before its question was answered."""

    @property
    def rank(self) -> int:
        return int(self.factors[0].shape[1])


Answer = Callable[[list[Look]], bool]
"""Whether the looks at a refit so far, one after each doubling of its passes, suffice."""


class Trials:
    """Refits on the training part of a fold, until the time is up."""

    def __init__(self, problem: Problem, fold: Fold, clock: Clock, n_threads: int) -> None:
        self.problem = replace(problem, storage=fold.training)
        self.fold = fold
        self.clock = clock
        self.n_threads = n_threads
        self.rng = np.random.default_rng(0)
        chosen, _ = choice(self.problem, make_settings(self.problem))
        # A method that is asked for by name is not followed by repairs, which take as long again.
        self.solver = from_a_start(chosen, "", self.problem)[0].name

    def refitted(self, factors: list[np.ndarray], answered: Answer) -> Trial:
        """The model that a start becomes on the training part."""
        problem = self.problem
        looks: list[Look] = []
        done = False

        def after_pass(report: Any) -> bool:
            nonlocal done
            if report.record.epoch >= FIRST_LOOK * 2 ** len(looks):
                looks.append(Look(self._losses(report.model()), report.record.loss))
                done = answered(looks)
            return done or self.clock.over

        found = fit(
            problem.storage,
            factors[0].shape[1],
            problem.loss,
            init=factors,
            constraint=dict(enumerate(problem.constraints)),
            solver=self.solver,
            max_epochs=MOST_PASSES,
            callback=after_pass,
            tol=TOL,
            random_state=0,
            n_threads=self.n_threads,
            progress=False,
        )
        if found.status.interrupted:
            raise KeyboardInterrupt
        last = looks[-1] if done else Look(self._losses(found.model), found.loss)
        return Trial(
            last.losses,
            last.training_loss,
            found.model.distribute().factors,
            cut=not (done or found.status.converged),
        )

    def _losses(self, model: CPModel) -> np.ndarray:
        """The losses of the held-out cells."""
        m = model.values(tuple(self.fold.places)).astype(np.float64)
        return self.problem.loss.values_at(self.fold.x, m)

    def merged(self, trial: Trial, rank: int, answered: Answer) -> Trial:
        """Fewer components: those that are most alike are merged."""
        A = merged(stack(trial.factors), replace(self.problem, rank=rank))
        return self.refitted(unstack(A, self.problem.shape), answered)

    def pruned(self, trial: Trial, rank: int, answered: Answer) -> Trial:
        """Fewer components: those that training cells miss least are left out.

        A merge keeps a little of everything, which is a poor start where components have learnt
        noise by heart: what they are merged with gets their noise.
        """
        A = stack(trial.factors)
        objective = objective_of(self.problem.storage, self.problem.loss, self.n_threads)
        at_once = math.ceil((A.shape[1] - rank) / PRUNING_ROUNDS)
        with threads.limited_to(self.n_threads):
            look = objective.watch(A, np.random.default_rng(0))
            while A.shape[1] > rank:
                without = [look(np.delete(A, r, axis=1)).loss for r in range(A.shape[1])]
                least = np.argsort(without, kind="stable")[: min(at_once, A.shape[1] - rank)]
                A = np.delete(A, least, axis=1)
        return self.refitted(unstack(A, self.problem.shape), answered)

    def wider(self, trial: Trial, split: int, new: int, answered: Answer) -> Trial | None:
        """More components: so many heavy ones are split, and so many are new."""
        try:
            return self.refitted(self._widened(trial.factors, split, new), answered)
        except DivergedError:
            return None

    def behind(self, one: Look, other: Look) -> Mean:
        """By how much the loss of held-out cells is higher under one than under another; NaN where
        a loss is not finite.
        """
        with np.errstate(invalid="ignore"):
            return mean_over([one.losses - other.losses], [self.fold])

    def gain_by_chance(self, trial: Trial) -> float:
        """How much a component may lower the mean loss of training cells where there is nothing
        left to be found.

        To the second order, the best component of noise lowers the sum of losses by half the
        square of the largest value that a tensor of independent standard normal numbers takes on
        unit vectors, in units of the dispersion; that value is at most the sum of the roots of the
        sizes of the modes, and near it.
        """
        dispersion = CellSample(self.problem).dispersion(stack(trial.factors))
        largest = sum(math.sqrt(n) for n in self.problem.shape)
        return dispersion * largest**2 / 2 / self.problem.storage.n_observed

    @cached_property
    def least_training_loss(self) -> float:
        """The mean loss of training cells under themselves; NaN where the loss has none."""
        storage, loss = self.fold.training, self.problem.loss
        total = stored = 0.0
        for x, weights in storage.weighted_values():
            values = np.asarray(x, dtype=np.float64).ravel()
            w = np.ones(values.size) if weights is None else weights.ravel()
            total += float(w @ loss.saturated(values))
            stored += float(w.sum())
        empty = storage.n_observed - stored
        if empty > 0:
            total += empty * float(loss.saturated(np.zeros(1))[0])
        return total / storage.n_observed

    def explained(self, trial: Look) -> float | None:
        """The share of the deviance of held-out cells that a trial explains; None where the loss
        has no deviance for them.
        """
        most, least = self._worst_and_best
        own = float(self.fold.weights @ trial.losses)
        if not np.isfinite([own, most, least]).all() or most - least <= TINY:
            return None
        return 1.0 - (own - least) / (most - least)

    @cached_property
    def _worst_and_best(self) -> tuple[float, float]:
        """The loss of held-out cells under their best constant, and under themselves."""
        fold, loss = self.fold, self.problem.loss
        if not loss.allows_zeros and (fold.x == 0).any():
            return math.nan, math.nan
        constant = np.full(fold.x.size, best_constant(loss, fold.x, fold.weights))
        worst, best = loss.values_at(fold.x, constant), loss.saturated(fold.x)
        return float(fold.weights @ worst), float(fold.weights @ best)

    def _widened(self, factors: list[np.ndarray], split: int, new: int) -> list[np.ndarray]:
        """Split heavy components, and add new ones where the residuals ask for them.

        A component that two should share is told apart by a split at once, and one that is nowhere
        in the model is found by the residuals; neither does the work of the other.
        """
        order, old = len(factors), factors[0].shape[1]
        sizes = np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0)
        added = self._where_residuals_ask(factors, new)
        length = (NEW_SHARE * float(np.median(sizes))) ** (1 / order)
        chosen = np.argsort(-sizes)[np.arange(split) % old]
        mean = float(sizes.sum() / (old + split)) ** (1 / order)
        shrunk = (old / (old + split)) ** (1 / order)
        widened = []
        for A, C in zip(factors, added, strict=True):
            copies = A[:, chosen] * np.exp(self.rng.standard_normal((len(A), split)))
            widened.append(np.hstack([shrunk * A, _of_length(copies, mean), _of_length(C, length)]))
        return widened

    def _where_residuals_ask(self, factors: list[np.ndarray], count: int) -> list[np.ndarray]:
        """Turn random columns by power steps on the tensor of derivatives; return those along which
        it is steepest.
        """
        shape, tried = self.problem.shape, max(CANDIDATES, count)
        nonnegative = [bool((A >= 0).all()) for A in factors]
        columns = [self.rng.standard_normal((n, tried)) for n in shape]
        columns = [np.abs(c) if n else c for c, n in zip(columns, nonnegative, strict=True)]
        steepness = np.ones(tried)
        small = 1e-6 * max(float(np.abs(A).max()) for A in factors) + TINY
        objective = objective_of(self.problem.storage, self.problem.loss, self.n_threads)
        with threads.limited_to(self.n_threads):
            for step in range(POWER_ROUNDS * len(shape)):
                mode = step % len(shape)
                short = [_of_length(c, small) for c in columns]
                both = [np.hstack(pair) for pair in zip(factors, short, strict=True)]
                _, gradient = objective.gradient(stack(both))
                downhill = -parts(gradient, shape)[mode][:, -tried:]
                if nonnegative[mode]:
                    downhill = np.maximum(downhill, 0.0)
                steepness = np.linalg.norm(downhill, axis=0)
                columns[mode] = np.where(steepness > 0, downhill, columns[mode])
        best = np.argsort(-steepness)[:count]
        # A few cells that the model holds for all but impossible have derivatives without bounds,
        # and would have a component each; roots spread it over the rows that it has in common.
        return [
            np.sqrt(c[:, best]) if n else c[:, best]
            for c, n in zip(columns, nonnegative, strict=True)
        ]


def _of_length(columns: np.ndarray, length: float) -> np.ndarray:
    return columns * (length / np.maximum(np.linalg.norm(columns, axis=0), TINY))
