"""Sums of quadratics of the model over all cells, in closed form.

For m = a low-rank model, the sum of m over all cells is a product of column sums, and that of m² a
product of Gram matrices: the zeros of a tensor cost nothing wherever a loss is a quadratic there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd.losses import Data, Domain, Loss


class Quadratic(NamedTuple):
    """The function c0 + c1 m + c2 m² / 2."""

    c0: float
    c1: float
    c2: float

    def at(self, m: np.ndarray) -> np.ndarray:
        return self.c0 + (self.c1 + 0.5 * self.c2 * m) * m


@dataclass(frozen=True)
class QuadraticLoss(Loss):
    """c1 m + c2 m² / 2 as a loss, for compiled sums over chosen cells."""

    c1: float
    c2: float

    name = "quadratic"
    data = Data.REAL
    domain = Domain.REAL

    @staticmethod
    def value(x: Any, m: Any, p: Any) -> Any:
        return (p[0] + 0.5 * p[1] * m) * m

    @staticmethod
    def derivative(x: Any, m: Any, p: Any) -> Any:
        return p[0] + p[1] * m


def quadratic_sum(
    A: np.ndarray, shape: tuple[int, ...], q: Quadratic, want_gradient: bool
) -> tuple[float, np.ndarray]:
    """The sum of q(m) over all cells of the model with stacked factors A, and its gradient."""
    factors = np.split(A, offsets(shape)[1:-1])
    sums = np.array([F.sum(axis=0) for F in factors])
    grams = np.array([F.T @ F for F in factors]) if q.c2 else np.ones((len(shape), 1, 1))
    total = q.c0 * math.prod(shape)
    total += q.c1 * float(sums.prod(axis=0).sum())
    if q.c2:
        total += 0.5 * q.c2 * float(grams.prod(axis=0).sum())
    if not want_gradient:
        return total, A
    parts = []
    for n, F in enumerate(factors):
        rest = np.arange(len(shape)) != n
        G = np.broadcast_to(q.c1 * sums[rest].prod(axis=0), F.shape)
        parts.append(G + q.c2 * (F @ grams[rest].prod(axis=0)) if q.c2 else G)
    return total, np.concatenate(parts)


def square_sum(A: np.ndarray, shape: tuple[int, ...]) -> float:
    """The sum of m² over all cells."""
    return quadratic_sum(A, shape, Quadratic(0.0, 0.0, 2.0), False)[0]


def square_product(A: np.ndarray, V: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """J' J V over all cells, where J is the derivative of the model by the stacked factors A."""
    factors, directions = (np.split(B, offsets(shape)[1:-1]) for B in (A, V))
    grams = np.array([F.T @ F for F in factors])
    mixed = np.array([D.T @ F for D, F in zip(directions, factors, strict=True)])
    parts = []
    for n, (F, D) in enumerate(zip(factors, directions, strict=True)):
        rest = [k for k in range(len(shape)) if k != n]
        product = D @ grams[rest].prod(axis=0)
        for k in rest:
            others = [j for j in rest if j != k]
            product += F @ (mixed[k] * grams[others].prod(axis=0))
        parts.append(product)
    return np.concatenate(parts)
