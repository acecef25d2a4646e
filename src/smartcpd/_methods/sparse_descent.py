"""Quasi-Newton descents over a sparse tensor: its nonzeros one by one, its zeros all at once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from smartcpd._data.storage import SparseTensor
from smartcpd._kernels.coupled_solve import compiled_coupled_solve
from smartcpd._methods.descents import Descents
from smartcpd._methods.quasi_newton import Function, QuasiNewton
from smartcpd._objectives.comparable import SteadyObjective

REFRESH = 20
"""Number of steps after which an approximate background is made anew."""


class SparseDescents(Descents):
    """Quasi-Newton descents on a sparse tensor, whose zeros have a closed form, are looked at one
    by one where those are few enough, or are known by the cells that matter.
    """

    precisions: ClassVar[tuple[str, ...]] = ("float64",)

    def set_up(self) -> None:
        self.storage = self.problem.stored_as(SparseTensor)
        self.steady = SteadyObjective.of(self.problem, self.n_threads)

    @property
    def changing(self) -> tuple[Any, ...]:
        return (self.steady,)

    def settle(self, newton: QuasiNewton) -> None:
        A = newton.point.A
        if not self.steady.moves:
            return
        if newton.iteration % REFRESH == 0 or self.steady.is_stale(A):
            self.steady.settle(A)
            newton.switch(newton.function, A, newton.noise)

    def compile(self, A: np.ndarray) -> None:
        self.steady.compile(A)
        compiled_coupled_solve()
        self.sample.resolution(A)

    def resolution(self, A: np.ndarray) -> float:
        return self.sample.resolution(A)

    def count_pass(self) -> None:
        self.tracker.entries += self.storage.n_stored
        self.tracker.check_time()

    def noise(self, precision: str) -> float:
        return 1e-14

    def function(self, precision: str) -> Function:
        def value_and_gradient(A: np.ndarray) -> tuple[float, np.ndarray]:
            self.count_pass()
            return self.steady.gradient(A)

        return value_and_gradient
