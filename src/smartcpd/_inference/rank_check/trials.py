"""Models of other ranks on cells that they did not see, each begun at the model in question.

A refit from the model in question is near its optimum at once, and one with fewer or more
components starts from what that model already knows. None of them is run longer than allowed: a
refit that was cut short makes another rank look worse, so that a verdict is held back, never made
up.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from smartcpd._common import threads
from smartcpd._common.stacked import parts, stack, unstack
from smartcpd._fitting.fit import fit
from smartcpd._inference.selection.folds import Fold
from smartcpd._inference.selection.scores import mean_over
from smartcpd._methods.merging import merged
from smartcpd._objectives import objective_of
from smartcpd._problem.problem import Problem
from smartcpd.errors import DivergedError
from smartcpd.quality.deviance import best_constant

TOL = 0.2
SAME_PASSES, FEWER_PASSES, MORE_PASSES = 40, 100, 80
"""The most passes of a refit of a model, and of models with fewer and with more components."""
POWER_STEPS = 2
"""Rounds over the modes in which new components turn to where the data asks for them."""
NEW_SHARE = 0.1
"""The size that a new component begins with, as a share of the median size."""
SHARE_OF_FIT, LEAST_SECONDS = 1 / 3, 2.0
"""The time that all refits may take: this share of the time of the fit, or so many seconds of the
processors together, whichever is more."""
TINY = 1e-300


class Clock:
    """Tells when time is up. A short time is counted in seconds of the processors, so that a busy
    machine does not change a verdict.
    """

    def __init__(self, fit_seconds: float) -> None:
        self._wall = time.perf_counter() + SHARE_OF_FIT * fit_seconds
        self._busy = time.process_time() + LEAST_SECONDS

    @property
    def over(self) -> bool:
        return time.perf_counter() >= self._wall and time.process_time() >= self._busy


@dataclass(frozen=True, eq=False)
class Trial:
    """A model of the cells that are not held out, and the losses of those that are."""

    factors: list[np.ndarray]
    losses: np.ndarray
    training_loss: float
    cut: bool
    """Whether it ended because time was up."""

    @property
    def rank(self) -> int:
        return int(self.factors[0].shape[1])


class Trials:
    """Refits on the training part of a fold, until the time is up."""

    def __init__(self, problem: Problem, fold: Fold, fit_seconds: float, n_threads: int) -> None:
        self.problem = replace(problem, storage=fold.training)
        self.fold = fold
        self.clock = Clock(fit_seconds)
        self.n_threads = n_threads
        self.rng = np.random.default_rng(0)

    def refitted(self, factors: list[np.ndarray], passes: int = SAME_PASSES) -> Trial:
        """The model that a start becomes on the training part."""
        problem = self.problem
        found = fit(
            problem.storage,
            factors[0].shape[1],
            problem.loss,
            init=factors,
            constraint=dict(enumerate(problem.constraints)),
            max_epochs=passes,
            callback=lambda report: self.clock.over,
            tol=TOL,
            random_state=0,
            n_threads=self.n_threads,
            progress=False,
        )
        m = found.model.values(tuple(self.fold.places)).astype(np.float64)
        losses = problem.loss.values_at(self.fold.x, m)
        if found.status.interrupted:
            raise KeyboardInterrupt
        return Trial(found.model.distribute().factors, losses, found.loss, self.clock.over)

    def narrower(self, trial: Trial, rank: int) -> Trial:
        """Fewer components: those that are most alike are merged."""
        A = merged(stack(trial.factors), replace(self.problem, rank=rank))
        return self.refitted(unstack(A, self.problem.shape), FEWER_PASSES)

    def wider(self, trial: Trial, rank: int) -> Trial | None:
        """More components, begun where the residuals of the training part ask for them."""
        try:
            return self.refitted(self._widened(trial.factors, rank), MORE_PASSES)
        except DivergedError:
            return None

    def behind(self, one: Trial, other: Trial) -> float:
        """By how many standard errors the loss of held-out cells is higher under one than under
        another; NaN where a loss is not finite, or where both are the same.
        """
        with np.errstate(invalid="ignore"):
            found = mean_over([one.losses - other.losses], [self.fold])
        return found.value / found.error if found.error > 0 else math.nan

    def explained(self, trial: Trial) -> float | None:
        """The share of the deviance of held-out cells that a trial explains; None where the loss
        has no deviance for them.
        """
        fold, loss = self.fold, self.problem.loss
        if not loss.allows_zeros and (fold.x == 0).any():
            return None
        constant = best_constant(loss, fold.x, fold.weights)
        own, most, least = (
            float(fold.weights @ losses)
            for losses in (
                trial.losses,
                loss.values_at(fold.x, np.full(fold.x.size, constant)),
                loss.saturated(fold.x),
            )
        )
        if not np.isfinite([own, most, least]).all() or most - least <= TINY:
            return None
        return 1.0 - (own - least) / (most - least)

    def _widened(self, factors: list[np.ndarray], rank: int) -> list[np.ndarray]:
        """Add small components, turned by power steps on the tensor of derivatives."""
        shape, old = self.problem.shape, factors[0].shape[1]
        new = slice(old, rank)
        nonnegative = [bool((A >= 0).all()) for A in factors]
        columns = [self.rng.standard_normal((n, rank - old)) for n in shape]
        columns = [np.abs(c) if n else c for c, n in zip(columns, nonnegative, strict=True)]
        sizes = np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0)
        small = 1e-6 * max(float(np.abs(A).max()) for A in factors) + TINY
        objective = objective_of(self.problem.storage, self.problem.loss, self.n_threads)
        with threads.limited_to(self.n_threads):
            for step in range(POWER_STEPS * len(shape)):
                mode = step % len(shape)
                unit = [c / np.maximum(np.linalg.norm(c, axis=0), TINY) for c in columns]
                both = [np.hstack([A, small * u]) for A, u in zip(factors, unit, strict=True)]
                _, gradient = objective.gradient(stack(both))
                downhill = -parts(gradient, shape)[mode][:, new]
                if nonnegative[mode]:
                    downhill = np.maximum(downhill, 0.0)
                found = np.linalg.norm(downhill, axis=0) > 0
                columns[mode] = np.where(found, downhill, columns[mode])
        size = (NEW_SHARE * float(np.median(sizes))) ** (1 / len(shape))
        unit = [c / np.maximum(np.linalg.norm(c, axis=0), TINY) for c in columns]
        return [np.hstack([A, size * u]) for A, u in zip(factors, unit, strict=True)]
