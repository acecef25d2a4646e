"""An approximate minimum of a convex quadratic within bounds, by projected conjugate gradients.

Conjugate gradients run among the entries that no bound holds. Where their step leaves the bounds it
is cut back to them, and they begin anew among the entries that are left. Every stage lowers the
quadratic, so it can end after any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ENOUGH = 0.9
"""The share of the slope of a step that bounds must leave for a stage to go on."""
KEPT_SLOPE = 0.1
"""If bounds cut the slope of a step to less than this, a gradient step is cut back instead: scaled
entry by entry, it leads downhill whatever the bounds do to it."""

Linear = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class BoundedQuadratic:
    """q(D) = <G, D> + <D, B D> / 2, for low <= D <= high, where 0 is allowed."""

    product: Linear
    """Computes B D from D."""
    precondition: Linear
    """Applies an approximate inverse of B, symmetric and positive definite."""
    scale: np.ndarray
    """An approximation of the diagonal of B."""
    gradient: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def size(self) -> float:
        """The length of the gradient among the free entries, in the metric of the
        preconditioner."""
        R = -self.gradient
        return self._norm(np.where(self._free(np.zeros_like(R), R), R, 0.0))

    def minimise(self, goal: float, limit: int) -> tuple[np.ndarray, float]:
        """Return a step and by how much it lowers q, once the gradient is no longer than ``goal``
        or after ``limit`` products.
        """
        D, R = np.zeros_like(self.gradient), -self.gradient
        while limit > 0:
            free = self._free(D, R)
            if self._norm(np.where(free, R, 0.0)) <= goal:
                break
            S, BS, used = self._conjugate(D, R, free, goal, limit)
            limit -= used
            if np.array_equal(self._clip(D + S), D + S):
                D, R = D + S, R - BS
                continue
            S = self._cut(D, R, S)
            BS = self.product(S)
            limit -= 1
            slope, bend = float(np.vdot(R, S)), float(np.vdot(S, BS))
            share = min(1.0, slope / bend) if bend > 0 else 1.0
            D, R = self._clip(D + share * S), R - share * BS
        return D, 0.5 * float(np.vdot(D, R - self.gradient))

    def _conjugate(
        self, D: np.ndarray, R: np.ndarray, free: np.ndarray, goal: float, limit: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Run conjugate gradients among the free entries; return a step S, B S and the products it
        took.

        They end early where bounds would cut off much of the step.
        """
        S, BS = np.zeros_like(R), np.zeros_like(R)
        r = np.where(free, R, 0.0)
        P = np.where(free, self.precondition(r), 0.0)
        length = float(np.vdot(r, P))
        for used in range(1, limit + 1):
            BP = self.product(P)
            bend = float(np.vdot(P, BP))
            if not bend > 0:
                return S, BS, used
            S += length / bend * P
            BS += length / bend * BP
            r = np.where(free, R - BS, 0.0)
            Z = np.where(free, self.precondition(r), 0.0)
            last, length = length, float(np.vdot(r, Z))
            if length <= goal**2 or self._kept(D, R, S) < ENOUGH:
                return S, BS, used
            P = Z + length / last * P
        return S, BS, limit

    def _cut(self, D: np.ndarray, R: np.ndarray, S: np.ndarray) -> np.ndarray:
        """The step S from D, cut back to the bounds so that it still leads downhill."""
        if self._kept(D, R, S) < KEPT_SLOPE:
            S = R / self.scale
        return self._clip(D + S) - D

    def _kept(self, D: np.ndarray, R: np.ndarray, S: np.ndarray) -> float:
        """The share of the slope of S that bounds leave."""
        return float(np.vdot(R, self._clip(D + S) - D) / np.vdot(R, S))

    def _free(self, D: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Entries that no bound keeps from going along R, downhill."""
        return ~(((self.low >= D) & (R < 0)) | ((self.high <= D) & (R > 0)))

    def _norm(self, r: np.ndarray) -> float:
        return float(np.sqrt(max(np.vdot(r, self.precondition(r)), 0.0)))

    def _clip(self, D: np.ndarray) -> np.ndarray:
        return np.clip(D, self.low, self.high)
