"""Starts for fits of dense data: a core, random factors, or multiplicative passes."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from smartcpd._common.factors import balanced
from smartcpd._common.stacked import parts, stack, unstack
from smartcpd._data.storage import Dense
from smartcpd._methods.descents import Descents
from smartcpd._methods.expected_counts import serves
from smartcpd._methods.mixture import Mixture
from smartcpd._methods.mm import Passes
from smartcpd._problem.problem import Problem
from smartcpd._strategies.compression import (
    Core,
    Filling,
    Joining,
    Scales,
    Starts,
    expanded,
    is_linear,
)
from smartcpd._strategies.starts import random_factors
from smartcpd.losses import Data, Domain

FIRST_STARTS, FIRST_SWEEPS, MORE_SWEEPS, SWEEPS_A_CHECK = 4, 20, 120, 10
PATIENCE = 4
"""A start is replaced if it would take more than so many checks to come as low as another."""
WIDTH = 1.5
"""Number of components of a wide start, relative to the rank."""
WIDE_STARTS, WIDE_SWEEPS = 2, 40
FEW_EVENTS, MANY_EVENTS = 3, 30
"""Number of events a parameter below which a core says nothing, and from which on agreement means a
lot.
"""
SMALLER = 3.0
"""Steps in which the size of a start is lowered."""
MULTIPLIED_PASSES = 8
"""Number of multiplicative passes of a start in the problem's own loss."""
FILLINGS = 3
"""The number of times that missing cells are filled in by a fit to all cells so far."""


def events_a_parameter(problem: Problem) -> float:
    """Return the events a parameter of dense counts or events; infinite for measurements."""
    if problem.loss.data not in (Data.COUNTS, Data.BINARY):
        return math.inf
    return problem.stored_as(Dense).n_events() / problem.freedom


class DenseStarts:
    """Makes starts for one problem, each independent of the others."""

    def __init__(self, problem: Problem, descents: Descents, rng: np.random.Generator) -> None:
        self.problem = problem
        self.joining = Joining.of(problem.shape, problem.rank)
        self.whole = problem.stored_as(Dense)
        # What stands for missing cells is a model of the modes as they are.
        self.storage = self.whole if self.whole.n_missing else self.joining.joined(self.whole)
        self.descents = descents
        self.rng = rng
        lows = parts(descents.region.low, problem.shape)
        self.nonnegative = [bool(low[0, 0] >= 0) for low in lows]

    def compile(self) -> None:
        """Have everything compiled before a clock starts."""
        if self.core_tells:
            for rank in (self.problem.rank, math.ceil(WIDTH * self.problem.rank)):
                some = np.zeros([min(rank, size) for size in self.storage.shape])
                Starts.random(some, 1, 1, np.random.default_rng(0)).sweep(0)

    def agreed(self) -> np.ndarray | None:
        """A start of the right rank that was found twice, if there is one."""
        if not self.core_tells or self.is_thin:
            return None
        core = Core.of(self.storage, self._scales, self.problem.rank, self._filling)
        best = self._first(core).best(2)
        for _ in range(MORE_SWEEPS // SWEEPS_A_CHECK):
            if best.agree():
                return self._expanded(core, best.best(1).factors_of(0))
            before = best.residuals.max()
            self._sweep(best, SWEEPS_A_CHECK)
            behind = np.ptp(best.residuals)
            if behind > PATIENCE * (before - best.residuals.max()):
                best = best.best(1).joined(self._first(core).best(1))
        return None

    def _first(self, core: Core) -> Starts:
        """A few random starts after as many sweeps as tell which are worth going on with."""
        starts = Starts.random(core.core, self.problem.rank, FIRST_STARTS, self.rng)
        self._sweep(starts, FIRST_SWEEPS)
        return starts

    def _sweep(self, starts: Starts, times: int) -> None:
        """Sweep, and look at the clock now and then."""
        for _ in range(times // SWEEPS_A_CHECK):
            starts.sweep(SWEEPS_A_CHECK)
            self.descents.tracker.check_time()

    def wide(self) -> np.ndarray:
        """A start with more components than the rank."""
        width = math.ceil(WIDTH * self.problem.rank)
        if self.core_tells:
            starts = Starts.random(self._wide_core.core, width, WIDE_STARTS, self.rng)
            self._sweep(starts, WIDE_SWEEPS)
            return self._expanded(self._wide_core, starts.best(1).factors_of(0))
        return self.own()

    def own(self) -> np.ndarray:
        """A wide start in the problem's own loss, which shares nothing with any other."""
        if serves(self.problem):
            return self._multiplied(math.ceil(WIDTH * self.problem.rank))
        return self.plain()

    def plain(self) -> np.ndarray:
        """A wide start that is nothing but random."""
        width = math.ceil(WIDTH * self.problem.rank)
        return self.descents.inside(stack(random_factors(self.problem, width, self.rng)))

    @property
    def core_tells(self) -> bool:
        """Whether least squares is about right, and there is enough data for it."""
        return is_linear(self.problem.loss) and self._events_a_parameter >= FEW_EVENTS

    @property
    def is_thin(self) -> bool:
        """Whether there are so few events that a part of the data says little."""
        return self._events_a_parameter < MANY_EVENTS

    @cached_property
    def _events_a_parameter(self) -> float:
        return events_a_parameter(self.problem)

    @cached_property
    def _scales(self) -> Scales:
        return Scales.of(self.storage, self.problem.loss)

    @cached_property
    def _wide_core(self) -> Core:
        width = math.ceil(WIDTH * self.problem.rank)
        return Core.of(self.storage, self._scales, width, self._filling)

    @cached_property
    def _filling(self) -> Filling | None:
        """Return what stands for missing cells: the means of slices, improved by least squares
        several times.
        """
        if not self.storage.n_missing:
            return None
        # The random numbers are its own: a fit that is resumed finds the same filling.
        rng = np.random.default_rng(0)
        filling = Filling.of_marginals(self.storage, self.problem.loss)
        for _ in range(FILLINGS):
            core = Core.of(self.storage, self._scales, self.problem.rank, filling)
            starts = Starts.random(core.core, self.problem.rank, FIRST_STARTS, rng)
            self._sweep(starts, FIRST_SWEEPS)
            factors = expanded(core, starts.best(1).factors_of(0), self.nonnegative, rng)
            filling = Filling(factors)
        return filling

    def _expanded(self, core: Core, components: list[np.ndarray]) -> np.ndarray:
        """Components of a core as stacked factors; nonnegative models get the mean of the data, or
        less."""
        if self.storage is not self.whole:
            core, components = self._split(core, components)
        factors = expanded(core, components, self.nonnegative, self.rng)
        found = self.descents.inside(stack(factors))
        if self.problem.loss.domain is Domain.NONNEGATIVE:
            level = self.problem.loss.link(self.storage.mean())
            now = float(np.prod([A.mean(axis=0) for A in factors], axis=0).sum())
            if level > 0 and now > 0:
                found = self._sized(found, level / now)
        return found

    def _sized(self, A: np.ndarray, factor: float) -> np.ndarray:
        """Factors whose model is multiplied, and made smaller as long as that lowers the loss.

        A component of an outlier that has the mean of the data is far larger than it; a descent
        from there would fall to zero, and stay.
        """

        def at(scale: float) -> tuple[float, np.ndarray]:
            scaled = self.descents.inside(A * scale ** (1 / len(self.problem.shape)))
            return self.descents.sample.estimate(scaled).loss, scaled

        best, smaller = at(factor), at(factor / SMALLER)
        while smaller[0] < best[0]:
            factor /= SMALLER
            best, smaller = smaller, at(factor / SMALLER)
        return best[1]

    def _split(self, core: Core, components: list[np.ndarray]) -> tuple[Core, list[np.ndarray]]:
        """Components of a core of joined modes as those of a core of all modes, after some sweeps
        there."""
        parts = zip(core.bases, components, core.scales.rows, strict=True)
        factors = self.joining.split([U @ A / s[:, None] for U, A, s in parts])
        scales = Scales.of(self.whole, self.problem.loss)
        width = components[0].shape[1]
        of_all = Core.of(self.whole, scales, width)
        pairs = zip(of_all.bases, balanced(factors), scales.rows, strict=True)
        inner = np.concatenate([U.T @ (A * s[:, None]) for U, A, s in pairs])
        return of_all, unstack(inner, of_all.core.shape)

    def _multiplied(self, width: int) -> np.ndarray:
        """A random start after some multiplicative passes, which is best where events are few."""
        passes = Passes.over(self.problem, self.descents.n_threads)
        A = stack(random_factors(self.problem, width, self.rng))
        mixture = Mixture.of(A, self.problem.shape)
        for _ in range(MULTIPLIED_PASSES):
            _, mixture = passes.step(mixture)
            self.descents.count_pass()
            self.descents.tracker.epoch += 1
        return mixture.balanced()
