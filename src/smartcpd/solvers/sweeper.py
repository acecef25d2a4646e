"""A phase of the method, bound to compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartcpd import mirrors
from smartcpd.kernels.sweep import compiled_sweep, tiling
from smartcpd.objective import Objective
from smartcpd.problem import Phase, Problem
from smartcpd.sampling import Draws, Uniform
from smartcpd.solvers.base import Settings
from smartcpd.stack import offsets
from smartcpd.steps import Probe

N_PROBES = 4


class Sweeper:
    """Runs iterations of Algorithm 1 on stacked factors, in place.

    Making one compiles what it needs; ``start`` fits the step rule to the factors at hand. Besides
    the factors, the step rule's state and the number of updates of each mode are all the state
    that a phase has.
    """

    def __init__(self, problem: Problem, phase: Phase, settings: Settings) -> None:
        self.problem = problem
        self.phase = phase
        self.settings = settings
        n_rows, n_modes = sum(problem.shape), len(problem.shape)
        self.state = np.zeros((n_rows, problem.rank), dtype=settings.dtype)
        self.updates = np.zeros(n_modes, dtype=settings.dtype)
        self._step_p = np.zeros((n_modes, 2), dtype=settings.dtype)
        self._bind()

    def start(self, A: np.ndarray, rng: np.random.Generator) -> None:
        """Forget the past and choose the step rule's parameters for the factors A."""
        self.state[:] = 0
        self.updates[:] = 0
        self._step_p[:] = [self.phase.step.params(probe) for probe in self._probes(A, rng)]

    def run(self, draws: Draws, A: np.ndarray) -> None:
        """One iteration for each draw."""
        self._compiled(
            *self._reading,
            draws.modes,
            draws.fibers,
            self.settings.inner_iterations,
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
        kinds = [(type(m), type(c)) for m, c in rules]
        distinct = [rules[kinds.index(kind)] for kind in dict.fromkeys(kinds)]
        slots = [list(dict.fromkeys(kinds)).index(kind) for kind in kinds]
        needs_convex = phase.step.needs_convex_part
        # Where nothing reads the dual, a trivial map stands in and the real one is not compiled.
        reads_dual = needs_convex or any(
            c.columnwise and not c.needs_quadratic for _, c in distinct
        )
        duals = [m if reads_dual else mirrors.get("quadratic") for m, _ in distinct]
        derivative = problem.loss.derivative_block(dtype)
        convex = problem.loss.convex_block(dtype) if needs_convex else derivative
        tiles = [tiling(size, settings.n_fibers, rank) for size in shape]
        parallel = settings.n_threads > 1 and any(t.worth_threads for t in tiles)
        cells = max(t.rows for t in tiles) * settings.n_fibers

        def pairs(values: Any) -> np.ndarray:
            return np.array(list(values), dtype=dtype)

        self._compiled = compiled_sweep(dtype, len(distinct), parallel)
        self._reading = (
            problem.storage.gather_block(dtype),
            problem.storage.handle(),
            np.array(shape, dtype=np.int64),
            offsets(shape),
        )
        self._rules = (
            np.array([t.rows for t in tiles], dtype=np.int64),
            (derivative, convex),
            tuple(real(v) for v in problem.loss.params),
            np.array(slots, dtype=np.int64),
            tuple(phase.step.scale_block(dtype) for _ in distinct),
            self._step_p,
            tuple(m.move_block(dtype) for m, _ in distinct),
            tuple(m.to_dual_block(dtype) for m in duals),
            tuple(m.to_primal_block(dtype) for m in duals),
            pairs(m.params for m in phase.mirrors),
            tuple(c.project_block(dtype) for _, c in distinct),
            pairs(c.params(m) for m, c in rules),
            np.array([c.columnwise for c in problem.constraints]),
            needs_convex,
            np.empty((settings.n_threads if parallel else 1, 3, cells), dtype=dtype),
        )

    def _probes(self, A: np.ndarray, rng: np.random.Generator) -> list[Probe]:
        """The size of the first gradients and of the factor's entries, mode by mode."""
        problem, n_fibers = self.problem, self.settings.n_fibers
        objective = Objective(problem.storage, problem.loss)
        fibers = Uniform().draw(problem.shape, N_PROBES, n_fibers, rng).fibers
        starts = offsets(problem.shape)
        wide = A.astype(np.float64)
        probes = []
        for mode, phi in enumerate(self.phase.mirrors):
            gradients = [objective.sampled_gradient(wide, mode, f) for f in fibers]
            typical = np.sqrt(np.mean(wide[starts[mode] : starts[mode + 1]] ** 2))
            probes.append(
                Probe(
                    float(np.mean(np.square(gradients))) or 1.0,
                    self.phase.pace * phi.unit(float(typical) or 1.0),
                )
            )
        return probes
