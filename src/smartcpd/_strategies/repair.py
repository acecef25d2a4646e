"""The repair of components that went wrong in a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from smartcpd._common.stacked import parts, stack

if TYPE_CHECKING:
    from smartcpd._objectives import Objective

DEAD = 1e-4
"""A component smaller than this share of the median size fits nothing."""
SAME = 0.99
"""Two components are taken for one from this product of cosines on."""
OPPOSITE, LARGE = -0.9, 3.0
"""Two components as opposite as this, each so many times as large as both together, cancel."""
ROUNDS = 2
"""Number of rounds of power steps over the modes."""
NEW_SHARE = 0.1
"""The size that a new component begins with, as a share of the median size."""
TINY = 1e-300


class Flaws(NamedTuple):
    """The flawed components of a model, by number."""

    dead: list[int]
    twins: list[tuple[int, int]]
    diverging: list[tuple[int, int]]

    @property
    def can_be_repaired(self) -> bool:
        return bool(self.dead or self.twins)

    def __str__(self) -> str:
        """A remark for people, or nothing. It names no component, since they are put in the order
        of their shares only later.
        """
        pairs = len(self.diverging)
        if not pairs:
            return ""
        which = "Two components" if pairs == 1 else f"{pairs} pairs of components"
        return (
            f"{which} grow without bound and cancel each other: this rank has no best model. Use a "
            "lower rank, or constraint='nonnegative'."
        )


def flaws(factors: list[np.ndarray]) -> Flaws:
    """Find dead components, pairs that double each other, and pairs that cancel."""
    rank = factors[0].shape[1]
    sizes, cosines = np.ones(rank), np.ones((rank, rank))
    for A in factors:
        norms = np.linalg.norm(A, axis=0)
        unit = A / np.maximum(norms, TINY)
        sizes *= norms
        cosines *= unit.T @ unit
    dead = [int(r) for r in np.flatnonzero(sizes <= DEAD * np.median(sizes))]
    alive = [r for r in range(rank) if r not in dead]
    pairs = [(i, j) for i in alive for j in alive if i < j]
    twins = [(i, j) for i, j in pairs if cosines[i, j] >= SAME]
    diverging = []
    for i, j in pairs:
        both = sizes[i] ** 2 + sizes[j] ** 2 + 2 * cosines[i, j] * sizes[i] * sizes[j]
        if cosines[i, j] <= OPPOSITE and min(sizes[i], sizes[j]) ** 2 > LARGE**2 * max(both, 0.0):
            diverging.append((i, j))
    return Flaws(dead, twins, diverging)


def repaired(
    factors: list[np.ndarray], found: Flaws, objective: Objective, rng: np.random.Generator
) -> list[np.ndarray]:
    """Merge twins, and put components that the data asks for in the place of superfluous ones."""
    factors = [A.copy() for A in factors]
    free = list(found.dead)
    for i, j in found.twins:
        if i in free or j in free:
            continue
        sizes = [np.prod([np.linalg.norm(A[:, r]) for A in factors]) for r in (i, j)]
        scale = (sum(sizes) / max(sizes[0], TINY)) ** (1 / len(factors))
        for A in factors:
            A[:, i] *= scale
        free.append(j)
    sizes = np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0)
    typical = float(np.median(np.delete(sizes, free))) if len(free) < sizes.size else 1.0
    for r in free:
        columns = _steepest(factors, r, objective, rng)
        for A, column in zip(factors, columns, strict=True):
            A[:, r] = column * (NEW_SHARE * typical) ** (1 / len(factors))
    return factors


def _steepest(
    factors: list[np.ndarray], r: int, objective: Objective, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return unit columns along which a small component lowers the loss most, by power steps on the
    tensor of derivatives, which is known by what a pass contracts it to. Each step takes one mode:
    all at once, they could keep pointing uphill.
    """
    shape = tuple(len(A) for A in factors)
    nonnegative = [bool((A >= 0).all()) for A in factors]
    columns = [rng.standard_normal(n) for n in shape]
    columns = [np.abs(c) if n else c for c, n in zip(columns, nonnegative, strict=True)]
    columns = [c / np.linalg.norm(c) for c in columns]
    small = 1e-6 * max(float(np.abs(A).max()) for A in factors) + TINY
    for step in range(ROUNDS * len(shape)):
        mode = step % len(shape)
        for A, column in zip(factors, columns, strict=True):
            A[:, r] = small * column
        _, gradient = objective.gradient(stack(factors))
        downhill = -parts(gradient, shape)[mode][:, r]
        if nonnegative[mode]:
            downhill = np.maximum(downhill, 0.0)
        norm = float(np.linalg.norm(downhill))
        if norm > 0:
            columns[mode] = downhill / norm
    return columns
