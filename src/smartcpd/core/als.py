"""Least squares on a core, from several starts at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RIDGE = 1e-6
MOMENTUM = 0.5
"""At first; grows by a twentieth a sweep while the residual falls, up to 1."""
LARGE = 1 << 15
"""Numbers in a core from which on float32 is worth its haste."""
SAME = 0.95
"""The product of cosines from which on two components are taken for the same."""


@dataclass
class Starts:
    """Factors (starts x K_n x rank) of each mode, improved side by side.

    A sweep of alternating least squares begins where the last two results point to. A start whose
    residual rises goes back and makes a plain sweep.
    """

    core: np.ndarray
    factors: list[np.ndarray]

    @classmethod
    def random(cls, core: np.ndarray, rank: int, n_starts: int, rng: np.random.Generator) -> Starts:
        precision = np.float32 if core.size > LARGE else np.float64
        normal = [rng.standard_normal((n_starts, size, rank)) for size in core.shape]
        return cls(core.astype(precision), [A.astype(precision) for A in normal])

    def __post_init__(self) -> None:
        n_starts = len(self.factors[0])
        self.square = float(np.vdot(self.core, self.core))
        self.residuals = np.full(n_starts, np.inf)
        self.momentum = np.full(n_starts, MOMENTUM)
        self.plain = np.ones(n_starts, bool)
        self.before = [A.copy() for A in self.factors]

    def sweep(self, times: int) -> None:
        for _ in range(times):
            self._sweep()

    def best(self, n: int) -> Starts:
        """The starts with the smallest residuals, to go on with."""
        chosen = np.argsort(self.residuals, kind="stable")[:n]
        few = Starts(self.core, [A[chosen] for A in self.factors])
        few.residuals = self.residuals[chosen]
        few.momentum = self.momentum[chosen]
        few.plain = self.plain[chosen]
        few.before = [A[chosen] for A in self.before]
        return few

    def factors_of(self, start: int) -> list[np.ndarray]:
        return [A[start].astype(np.float64) for A in self.factors]

    def agree(self) -> bool:
        """Whether the first two starts found the same components."""
        from scipy.optimize import linear_sum_assignment  # slow to import

        cosines = 1.0
        for A in self.factors:
            unit = A[:2] / np.maximum(np.linalg.norm(A[:2], axis=1, keepdims=True), 1e-30)
            cosines = cosines * (unit[0].T @ unit[1])
        rows, columns = linear_sum_assignment(-np.asarray(cosines))
        return bool(np.asarray(cosines)[rows, columns].min() >= SAME)

    def _sweep(self) -> None:
        weight = np.where(self.plain, 0.0, self.momentum)[:, None, None].astype(self.core.dtype)
        new = [A + weight * (A - B) for A, B in zip(self.factors, self.before, strict=True)]
        residuals = self._least_squares(new)
        worse = (residuals > self.residuals * (1 + 1e-12)) & ~self.plain
        keep = worse[:, None, None]
        self.before = [np.where(keep, B, A) for A, B in zip(self.factors, self.before, strict=True)]
        self.factors = [np.where(keep, A, N) for A, N in zip(self.factors, new, strict=True)]
        self.residuals = np.where(worse, self.residuals, residuals)
        self.momentum = np.where(worse, 0.7 * self.momentum, np.minimum(1, 1.05 * self.momentum))
        self.plain = worse

    def _least_squares(self, factors: list[np.ndarray]) -> np.ndarray:
        """One mode after the other, in place; the squared residual of each start."""
        order, (n_starts, _, rank) = self.core.ndim, factors[0].shape
        shape = self.core.shape
        grams = [A.transpose(0, 2, 1) @ A for A in factors]
        last = factors[-1].transpose(1, 0, 2).reshape(shape[-1], -1)
        partial = (self.core.reshape(-1, shape[-1]) @ last).reshape(*shape[:-1], n_starts, rank)
        # All modes but the last share a contraction, since the last factor stays as it was.
        for mode in range(order - 1):
            projected = partial
            for k in reversed([k for k in range(order - 1) if k != mode]):
                projected = np.einsum(
                    "...ksr,skr->...sr", np.moveaxis(projected, k, -3), factors[k]
                )
            self._solve(factors, grams, mode, projected.transpose(1, 0, 2))
        products = np.ones((n_starts, 1, rank), self.core.dtype)
        for A in factors[:-1]:
            products = (products[:, :, None] * A[:, None]).reshape(n_starts, -1, rank)
        flat = products.transpose(1, 0, 2).reshape(products.shape[1], -1)
        projected = self.core.reshape(-1, shape[-1]).T @ flat
        projected = projected.reshape(shape[-1], n_starts, rank).transpose(1, 0, 2)
        self._solve(factors, grams, order - 1, projected)
        model = (projected * factors[-1]).sum(axis=(1, 2), dtype=np.float64)
        square = np.prod(grams, axis=0).sum(axis=(1, 2), dtype=np.float64)
        return np.asarray(self.square - 2 * model + square)

    @staticmethod
    def _solve(
        factors: list[np.ndarray], grams: list[np.ndarray], mode: int, projected: np.ndarray
    ) -> None:
        """The normal equations of one mode; its factor and Gram matrix change in place."""
        matrix = np.prod([G for k, G in enumerate(grams) if k != mode], axis=0)
        rank = matrix.shape[1]
        ridge = RIDGE * np.trace(matrix, axis1=1, axis2=2) / rank + 1e-30
        matrix += ridge[:, None, None] * np.eye(rank, dtype=matrix.dtype)
        A = np.linalg.solve(matrix, projected.transpose(0, 2, 1)).transpose(0, 2, 1)
        factors[mode] = A
        grams[mode] = A.transpose(0, 2, 1) @ A
