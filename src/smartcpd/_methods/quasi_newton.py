"""A projected quasi-Newton method that starts from a good guess of the Hessian.

It is limited-memory BFGS with bounds. What sets it apart is its first guess of the Hessian, made
from the factors and the loss, in place of a multiple of the identity: the blocks of a
`Preconditioner` far from a solution, near one a `CoupledHessian`, or `RowHessians` where a region
has them. It needs several times fewer passes over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smartcpd._methods.coupled_hessian import CoupledHessian
from smartcpd._methods.limited_memory import LimitedMemory
from smartcpd._methods.preconditioner import Preconditioner
from smartcpd._methods.row_hessians import RowHessians
from smartcpd._objectives.fisher_weights import Marginals
from smartcpd._problem.checkpoints.values import kept_value
from smartcpd._problem.shared import NONE_SHARED, SharedModes
from smartcpd.losses import Domain, Loss

REFRESH = (0, 5, 20, 50, 100, 200)
"""Iterations at which the Hessian is guessed anew, from then on every 200."""
REFRESH_OF_ROWS = 50
"""The number of iterations after which the Hessians of rows are computed anew."""
ARMIJO = 1e-4
BACKTRACKS = 8
KEPT_SLOPE = 0.3
"""If bounds cut the slope of a direction to less than this, it is computed anew without the
entries that run into them."""
FREEZES = 4
LEAST, NEGLIGIBLE = 0.01, 1e-4
"""What a step leaves of an entry, at the least, as long as the entry is not negligible next to its
column's mean. Where several entries became 0 at once, the model would be 0 where data is not: the
loss is nearly infinite there, and no step of any use leads away from it.
"""
TINY = 1e-200

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Region:
    """The bounds of the factors, and how to guess the curvature within them."""

    shape: tuple[int, ...]
    loss: Loss
    low: np.ndarray
    high: np.ndarray
    row_weights: list[np.ndarray] | None = None
    """The mean weights of the rows' cells, where those differ."""
    shared: SharedModes = NONE_SHARED
    """The modes that have one factor together: points, gradients and directions stay equal there.
    """
    row_bends: Callable[[np.ndarray], list[np.ndarray]] | None = None
    """Computes the Hessians of the rows of all factors, for losses that ask for them."""


@kept_value
@dataclass(frozen=True)
class Point:
    A: np.ndarray
    value: float
    gradient: np.ndarray


class QuasiNewton:
    """A descent that makes one step a call."""

    kept = ("iteration", "memory", "point", "hessian", "is_near", "left")

    def __init__(
        self,
        function: Function,
        region: Region,
        A: np.ndarray,
        rng: np.random.Generator,
        noise: float = 0.0,
    ) -> None:
        """Begin at the factors A; ``noise`` is the relative rounding error of a value."""
        self.region = region
        self.rng = rng
        self.iteration = 0
        self.is_near = False
        self.left = 1.0
        self.memory = LimitedMemory.empty(A.size)
        self.low = region.low
        self.switch(function, A, noise)

    def switch(self, function: Function, A: np.ndarray, noise: float = 0.0) -> None:
        """Go on with another function of nearly the same shape, from another point."""
        self.function = function
        self.noise = noise
        self.point = self._evaluate(np.clip(A, self.region.low, self.region.high))

    def come_near(self) -> None:
        """Guess the Hessian for all factors together from here on."""
        self.is_near = True
        self._refresh()

    @property
    def knows_rows(self) -> bool:
        """Whether the Hessian is guessed by those of all rows."""
        return self.is_near and self.region.row_bends is not None

    def step(self) -> tuple[float, float]:
        """Move; returns what the quadratic model promised and what was gained.

        Both are 0 when no direction leads downhill any more.
        """
        if self._is_due:
            self._refresh()
        self.low = self._reach()
        self.iteration += 1
        for direction in (self._quasi_newton, self._without_memory, self._cautious):
            D = direction()
            slope = float(np.vdot(self.point.gradient, D))
            if slope >= 0 or not np.isfinite(slope):
                continue
            found = self._search(D, slope)
            if found is not None:
                gain = self.point.value - found.value
                self.memory = self.memory.after(
                    found.A - self.point.A, found.gradient - self.point.gradient
                )
                self.point = found
                return -0.5 * slope, gain
        return 0.0, 0.0

    @property
    def _is_due(self) -> bool:
        """Whether the Hessian is to be guessed anew."""
        often = REFRESH_OF_ROWS if self.knows_rows else REFRESH[-1]
        return self.iteration in REFRESH or self.iteration % often == 0

    def _refresh(self) -> None:
        region = self.region
        self.hessian: CoupledHessian | Preconditioner | RowHessians
        if self.is_near and region.row_bends is not None:
            self.hessian = RowHessians.of(region.row_bends(self.point.A), self.left)
            return
        weights = Marginals.at(
            self.point.A, region.shape, region.loss, self.rng, region.row_weights
        )
        guess = CoupledHessian if self.is_near else Preconditioner
        self.hessian = guess.at(self.point.A, region.shape, weights)

    def _quasi_newton(self) -> np.ndarray:
        """The quasi-Newton direction among the entries that bounds leave free."""
        A, G = self.point.A, self.point.gradient
        free = ~(((self.region.low >= A) & (G > 0)) | ((self.region.high <= A) & (G < 0)))
        scale = self._scale(free)
        for _ in range(FREEZES):
            D = self._two_loops(np.where(free, G, 0.0), free, scale)
            D[~free] = 0.0
            slope = float(np.vdot(G, D))
            T = A + D
            beyond = (self.region.low > T) | (self.region.high < T)
            towards = beyond & (D * G < 0)
            D = np.where(towards, self._within(T) - A, np.where(beyond, 0.0, D))
            if float(np.vdot(G, D)) <= KEPT_SLOPE * slope:
                break
            free &= ~beyond
        return D

    def _without_memory(self) -> np.ndarray:
        self.memory = LimitedMemory.empty(self.point.A.size)
        return self._quasi_newton()

    def _cautious(self) -> np.ndarray:
        """A gradient step in which no nonnegative entry can lose more than itself."""
        A, G = self.point.A, self.point.gradient
        size = np.abs(A) + 1e-3 * np.abs(A).mean(axis=0)
        bend = self.region.shared.mean(self.hessian.diagonal())
        D = -size * G / (np.abs(G) + size / (0.3 * bend) + TINY)
        return self._within(A + D) - A

    def _within(self, A: np.ndarray) -> np.ndarray:
        """The entries that a step from the present point may lead to."""
        return np.minimum(np.maximum(A, self.low), self.region.high)

    def _reach(self) -> np.ndarray:
        """Return how low entries may go in one step."""
        A, low = self.point.A, self.region.low
        if self.region.loss.domain is not Domain.NONNEGATIVE or low.min() < 0:
            return low
        above = A - low
        return np.where(above > NEGLIGIBLE * above.mean(axis=0), low + LEAST * above, low)

    def _two_loops(self, G: np.ndarray, free: np.ndarray, scale: float) -> np.ndarray:
        """Minus the approximate inverse Hessian of the free entries times G."""
        if not len(self.memory):
            return -self._solved(G, free)
        rest, shares = self.memory.before_guess(G)
        return -self.memory.after_guess(scale * self._solved(rest, free), shares)

    def _solved(self, G: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The guessed inverse Hessian times G, equal where modes share a factor."""
        return self.region.shared.mean(self.hessian.solve(G, free))

    def _scale(self, free: np.ndarray) -> float:
        """Return the factor by which the guessed Hessian is too large, judged by the last step."""
        if not len(self.memory):
            return 1.0
        change, curvature = self.memory.newest
        Y = change.reshape(free.shape)
        return curvature / max(float(np.vdot(Y, self._solved(Y, free))), TINY)

    def _search(self, D: np.ndarray, slope: float) -> Point | None:
        """Backtrack until the value falls enough; None if it does not."""
        length = 1.0
        slack = self.noise * abs(self.point.value)
        for _ in range(BACKTRACKS):
            found = self._evaluate(self._within(self.point.A + length * D))
            drop = found.value - self.point.value
            if drop <= ARMIJO * length * slope + slack and np.isfinite(found.gradient).all():
                return found
            bend = drop - length * slope
            best = -0.5 * length**2 * slope / bend if np.isfinite(bend) and bend > 0 else 0.0
            length = min(max(best, 0.1 * length), 0.5 * length)
        return None

    def _evaluate(self, A: np.ndarray) -> Point:
        with np.errstate(over="ignore", invalid="ignore"):  # a trial may go too far
            A = self.region.shared.mean(A)
            value, gradient = self.function(A)
        return Point(A, value, self.region.shared.mean(gradient))
