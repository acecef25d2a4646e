"""An objective that stays one function while steps along it are compared.

The zeros of a large sparse tensor are summed approximately, and better near the factors that the
approximation was made for. A line search that saw another approximation at every point would take
the difference between two of them for a slope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._objectives import Objective, objective_of
from smartcpd._objectives.backgrounds import HotCells, Sampled
from smartcpd._objectives.backgrounds.quadratic import square_sum
from smartcpd._objectives.sparse import SparseObjective
from smartcpd._problem.problem import Problem

MAX_GROWTH = 1.5
"""The growth of the sum of m² beyond which a quadratic fitted to a sample is not trusted."""


@dataclass
class SteadyObjective:
    """An objective that stays one function, with its values and gradients, between calls of
    ``settle``.

    Only trials that go too far for the approximation get one of their own: it falls without bound
    there, and they would all look like great progress.
    """

    objective: Objective
    square_sum: float = np.inf
    """The sum of m² over all cells, when the function was settled."""
    settled_at: np.ndarray | None = None
    kept: ClassVar = ("settled_at",)

    @classmethod
    def of(cls, problem: Problem, n_threads: int) -> SteadyObjective:
        return cls(objective_of(problem.storage, problem.loss, n_threads))

    def compile(self, A: np.ndarray) -> None:
        """Have everything compiled before a clock starts, and settle at the factors A."""
        self.objective.compile(A)
        self.objective = self.objective.with_background(A)
        self.settle(A)

    @property
    def moves(self) -> bool:
        """Whether the function depends on where it was settled."""
        return isinstance(self._background, HotCells | Sampled)

    def settle(self, A: np.ndarray) -> None:
        """Approximate anew, for the factors A."""
        if self.moves:
            self.objective = self._made_for(A)
            self.square_sum = square_sum(A, self._background.shape)
            self.settled_at = A

    def put_back(self, values: dict[str, Any]) -> None:
        """Restore the state of another process; the function follows from the factors."""
        if values["settled_at"] is not None:
            self.settle(values["settled_at"])

    def is_stale(self, A: np.ndarray) -> bool:
        """Whether A lies outside of what the approximation is good for."""
        background = self._background
        if isinstance(background, Sampled):
            return square_sum(A, background.shape) > MAX_GROWTH * self.square_sum
        return isinstance(background, HotCells) and background.is_stale(A)

    def value(self, A: np.ndarray) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # a trial may go too far
            return self._at(A).estimate(A).loss

    def gradient(self, A: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._at(A).gradient(A)

    def mode_gradient(self, A: np.ndarray, mode: int) -> tuple[float, np.ndarray]:
        """Return value and gradient of one factor; a pass gives all at little more than the cost of
        one.
        """
        objective = self._at(A)
        value, gradient = objective.gradient(A)
        return value, parts(gradient, objective.storage.shape)[mode]

    @property
    def _background(self) -> Any:
        return getattr(self.objective, "background", None)

    def _at(self, A: np.ndarray) -> Objective:
        return self._made_for(A) if self.is_stale(A) else self.objective

    def _made_for(self, A: np.ndarray) -> Objective:
        """Return an objective that suits the factors A: large cells are looked up; sampled ones
        stay the same, or values would not compare.
        """
        assert isinstance(self.objective, SparseObjective)
        if isinstance(self._background, Sampled):
            return replace(self.objective, background=self._background.held_at(A))
        return self.objective.with_background(A)
