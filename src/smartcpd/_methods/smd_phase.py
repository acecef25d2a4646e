"""A phase of the method, bound to compiled code."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from smartcpd import constraints, mirrors, steps
from smartcpd._common.stacked import offsets
from smartcpd._data.opening import in_memory
from smartcpd._data.storage import SparseTensor
from smartcpd._kernels.events import unpack_block
from smartcpd._kernels.fibers import zero_gather
from smartcpd._kernels.sweep import compiled_sweep, tiling
from smartcpd._methods.base import Settings
from smartcpd._objectives.backgrounds.line import fitted_lines
from smartcpd._problem.phases import Phase
from smartcpd._problem.problem import Problem
from smartcpd.sampling import Draws
from smartcpd.steps import Probe

N_PROBES = 4
SLOTS = 4
"""The compiled loop has room for a multiple of so many rules, so that nearly all fits share one."""
MIN_ITERATIONS = 100
"""An epoch has at least this many iterations, or a tiny tensor would spend its time on checks."""


class Sweeper:
    """Runs iterations of Algorithm 1 on stacked factors, in place.

    Making one compiles what it needs; ``start`` fits the step rule to the factors at hand. Besides
    the factors, the step rule's state and the number of updates of each mode are all the state
    that a phase has.
    """

    kept = ("state", "updates", "_step_p", "_lines", "_lines_limit")

    def __init__(self, problem: Problem, phase: Phase, settings: Settings) -> None:
        self.problem = problem
        self.phase = phase
        self.settings = settings
        n_rows, n_modes = sum(problem.shape), len(problem.shape)
        self.state = np.zeros((n_rows, problem.rank), dtype=settings.dtype)
        self.updates = np.zeros(n_modes, dtype=settings.dtype)
        self._step_p = np.zeros((n_modes, 2), dtype=settings.dtype)
        self._lines = np.zeros((4, 2), dtype=settings.dtype)
        self._lines_limit = np.inf
        self._bind()

    def put_back(self, values: dict[str, Any]) -> None:
        """Restore the state of another process; compiled code knows these arrays, so they stay."""
        self._lines_limit = values.pop("_lines_limit")
        for name, value in values.items():
            getattr(self, name)[:] = value

    def start(
        self,
        A: np.ndarray,
        rng: np.random.Generator,
        squares: np.ndarray | None = None,
        pace: float = 1.0,
    ) -> np.ndarray:
        """Forget the past and choose the step rule's parameters for the factors A.

        ``squares`` are the mean squares of the first gradients of the fit, mode by mode; the first
        phase measures them, and they are returned for those that follow. Gradients shrink on the
        way, and steps that were scaled to the last ones would undo what is found by then. Steps
        are ``pace`` times as long as the rule has them.
        """
        self.state[:] = 0
        self.updates[:] = 0
        if squares is None:
            squares = np.array([self._mean_square(n, A, rng) for n in range(self.updates.size)])
        updates = epoch_iterations(self.problem, self.settings) / self.updates.size
        pieces = zip(self.phase.mirrors, self.problem.constraints, self._typical(A), strict=True)
        sizes = [(phi.unit(a), math.inf if c.signed else phi.half(a)) for phi, c, a in pieces]
        probes = [Probe(g, u, updates, half) for g, (u, half) in zip(squares, sizes, strict=True)]
        self._step_p[:] = [self.phase.step.params(probe) for probe in probes]
        self._step_p[:, 0] *= pace
        return squares

    def fit_background(self, A: np.ndarray, rng: np.random.Generator) -> None:
        """Fit the line that stands for the zeros of sparse data to the factors A."""
        if self.problem.has_background:
            convex = self.phase.step.needs_convex_part
            fitted = fitted_lines(self.problem.loss, self.problem.shape, A, rng, convex)
            self._lines[:] = fitted[:4]
            self._lines_limit = fitted.limit

    def run(self, draws: Draws, A: np.ndarray) -> None:
        """Make one iteration for each draw."""
        scale = 1.0 / self.problem.storage.n_observed
        self._compiled(
            *self._reading,
            draws.modes,
            draws.fibers,
            *self._events,
            draws.events,
            draws.event_starts,
            (draws.event_weights * scale).astype(self.settings.dtype),
            self._own_weights,
            self._surplus,
            self._lines,
            self._lines.dtype.type(self._lines_limit),
            self._lines.dtype.type(scale if self.problem.has_background else 0.0),
            1 if self.settings.fresh_fibers else self.settings.inner_iterations,
            *self._rules,
            A,
            self.state,
            self.updates,
        )

    def _bind(self) -> None:
        """Look up (or compile) the blocks of every distinct rule and the loop that runs them."""
        problem, phase, settings = self.problem, self.phase, self.settings
        dtype = settings.dtype
        real = np.dtype(dtype).type
        shape, rank = problem.shape, problem.rank
        rules = list(zip(phase.mirrors, problem.constraints, strict=True))
        # Modes that differ only in parameters share compiled code.
        kinds = [(type(m), m.variant("move"), type(c)) for m, c in rules]
        distinct = [rules[kinds.index(kind)] for kind in dict.fromkeys(kinds)]
        slots = [list(dict.fromkeys(kinds)).index(kind) for kind in kinds]
        distinct += distinct[:1] * (-len(distinct) % SLOTS)
        needs_convex = phase.step.needs_convex_part
        # Where nothing reads the dual, a trivial map stands in and the real one is not compiled.
        reads_dual = needs_convex or any(
            c.columnwise and not c.needs_quadratic for _, c in distinct
        )
        duals = [m if reads_dual else mirrors.get("quadratic") for m, _ in distinct]
        loss = problem.loss
        derivatives = loss.derivatives_block if needs_convex else loss.derivative_block
        n_events = problem.sampler.n_events(problem.storage)
        tiles = [tiling(size, settings.n_fibers, rank, n_events) for size in shape]
        parallel = settings.n_threads > 1 and any(t.worth_threads for t in tiles)
        cells = max(t.rows for t in tiles) * settings.n_fibers

        def pairs(values: Any) -> np.ndarray:
            return np.array(list(values), dtype=dtype)

        self._compiled = compiled_sweep(dtype, len(distinct), parallel)
        self._bind_data()
        self._reading = (
            self._gather,
            self._handle,
            *self._weighing,
            self._share,
            np.array(shape, dtype=np.int64),
            offsets(shape),
        )
        self._rules = (
            np.array([t.rows for t in tiles], dtype=np.int64),
            derivatives(dtype),
            tuple(real(v) for v in loss.params),
            np.array(slots, dtype=np.int64),
            tuple(phase.step.scale_block(dtype) for _ in distinct),
            self._step_p,
            tuple(c.step_block(m, dtype) for m, c in distinct),
            tuple(m.to_dual_block(dtype) for m in duals),
            tuple(m.to_primal_block(dtype) for m in duals),
            pairs(m.limited(phase.step.max_ratio) for m in phase.mirrors),
            tuple(c.project_block(dtype) for _, c in distinct),
            pairs(c.params(m) for m, c in rules),
            np.array([c.columnwise for c in problem.constraints]),
            needs_convex,
            np.empty((settings.n_threads if parallel else 1, 3 + 2, cells), dtype=dtype),
        )

    def _bind_data(self) -> None:
        """Look up how fibers and events are read; where there are no events, a stand-in unpacks
        them.
        """
        problem, dtype = self.problem, self.settings.dtype
        loss = problem.loss
        nothing = np.zeros(1, np.int64)
        self._own_weights = np.empty(0, dtype)
        if problem.sampler.splits:
            storage = problem.stored_as(SparseTensor)
            self._own_weights = storage.events.own_weights(dtype)
            surplus = problem.has_background and not storage.weighted
            part = "surplus" if surplus else "whole"
            convex = self.phase.step.needs_convex_part
            self._gather, self._handle = zero_gather(dtype), nothing
            self._weighing = zero_gather(dtype), np.empty(0, np.int64)
            self._events = (storage.events.unpack_block(dtype), storage.events.handle())
            derivative = loss.derivative_block(dtype, part)
            self._surplus = (derivative, loss.convex_block(dtype, part) if convex else derivative)
        else:
            data = in_memory(problem.storage, "Solver 'smd'")
            self._gather, self._handle = data.gather_block(dtype), data.handle()
            weigh = data.weigh_block(dtype) if data.weighted else self._gather
            self._weighing = weigh, data.weights_handle()
            self._events = (unpack_block("uint8", dtype), nothing)
            derivative = loss.derivative_block(dtype)
            self._surplus = (derivative, derivative)

    @property
    def _share(self) -> float:
        """Return one over the mean weight of a cell, by which a mean over fibers becomes one over
        what was observed.
        """
        storage = self.problem.storage
        return storage.n_cells / storage.n_observed if self.settings.n_fibers else 1.0

    def _typical(self, A: np.ndarray) -> list[float]:
        """Return the size of a typical entry of each factor."""
        parts = np.split(A.astype(np.float64), offsets(self.problem.shape)[1:-1])
        return [float(np.sqrt(np.mean(part**2))) or 1.0 for part in parts]

    def _mean_square(self, mode: int, A: np.ndarray, rng: np.random.Generator) -> float:
        """The mean square of the entries of a few sampled gradients, which are never all 0."""
        problem, settings = self.problem, self.settings
        gradients = []
        for _ in range(N_PROBES):
            draws = problem.sampler.draw(problem.storage, np.array([mode]), settings.n_fibers, rng)
            gradients.append(sampled_gradient(problem, settings, draws, A, rng))
        return float(np.mean(np.square(gradients))) or 1.0


def epoch_iterations(problem: Problem, settings: Settings) -> int:
    """Return how many iterations read as many entries, or events, as there are."""
    if problem.sampler.splits:
        whole, part = problem.storage.n_stored, float(problem.sampler.n_events(problem.storage))
    else:
        whole, part = problem.storage.n_cells, entries_in_fibers(problem, settings)
    return max(MIN_ITERATIONS, math.ceil(whole / max(part, 1.0)))


def entries_in_fibers(problem: Problem, settings: Settings) -> float:
    """Return the mean number of entries in the fibers of an iteration."""
    return settings.n_fibers * sum(problem.shape) / len(problem.shape)


def sampled_gradient(
    problem: Problem, settings: Settings, draws: Draws, A: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the gradient that an iteration sees, as the difference that a plain step makes.

    ``draws`` are those of one iteration; ``rng`` draws the cells that the background is fitted to.
    """
    # The step is long, since gradients of a mean over many cells are tiny next to the factors.
    eta = float(problem.storage.n_observed)
    n_modes = len(problem.shape)
    phase = Phase(steps.get("constant"), (mirrors.get("quadratic"),) * n_modes)
    plain = replace(problem, constraints=(constraints.get("free"),) * n_modes, phases=(phase,))
    sweeper = Sweeper(plain, phase, replace(settings, dtype="float64", inner_iterations=1))
    sweeper._step_p[:, 0] = eta
    before = A.astype(np.float64)
    after = before.copy()
    sweeper.fit_background(before, rng)
    sweeper.run(draws, after)
    first, last = offsets(problem.shape)[draws.modes[0] :][:2]
    return (before - after)[first:last] / eta
