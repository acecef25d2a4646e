"""Merging of components, from too many to the right number.

A run that starts with exactly as many components as it should end with often wastes one: two share
the work of one while another, usually a weak one, is missing, and sampled steps leave such a place
very slowly. A run that starts with half as many again finds all of them at once; those that double
another, or that fit nothing, are then merged.
"""

from __future__ import annotations

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._kernels.merging import compiled_merge_components
from smartcpd._methods.mixture import Mixture
from smartcpd._objectives.fisher_weights import Marginals
from smartcpd._problem.problem import Problem

TINY = 1e-300


def merged(A: np.ndarray, problem: Problem) -> np.ndarray:
    """Merge components, the cheapest pair first, until ``problem.rank`` are left."""
    shape = problem.shape
    A = A.copy()
    while A.shape[1] > problem.rank:
        keep, free = cheapest_pair(A, shape)
        A = _merge(A, shape, keep, free)
    parts = np.split(A, offsets(shape)[1:-1])
    maps = problem.phases[0].mirrors
    return np.concatenate(
        [c.apply(P, mirror=m) for P, c, m in zip(parts, problem.constraints, maps, strict=True)]
    )


def merged_by_weight(A: np.ndarray, problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Merge components like `merged`, counting what a merge costs where the loss curves most."""
    weights = Marginals.at(A, problem.shape, problem.loss, rng)
    root = np.sqrt(weights.rows)[:, None]
    scaled = root * A
    while scaled.shape[1] > problem.rank:
        scaled = _merge(scaled, problem.shape, *cheapest_pair(scaled, problem.shape))
    return scaled / root


def cheapest_pair(A: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int]:
    """The two components that could become one at the least cost, the heavier first.

    The cost is about the squared size of what no single component could represent: that of terms
    of sizes a and b with cosine c is taken as 2 (1 - c) (a b / (a + b))².
    """
    sizes, cosines = _sizes_and_cosines(A, shape)
    a, b = sizes[:, None], sizes[None, :]
    cost = (1 - cosines) * (a * b / np.maximum(a + b, TINY)) ** 2
    np.fill_diagonal(cost, np.inf)
    i, j = (int(k) for k in np.unravel_index(int(np.argmin(cost)), cost.shape))
    return (i, j) if sizes[i] >= sizes[j] else (j, i)


def _merge(A: np.ndarray, shape: tuple[int, ...], keep: int, free: int) -> np.ndarray:
    """One component in the weighted mean of two directions, with the sum of their sizes."""
    sizes, _ = _sizes_and_cosines(A, shape)
    share = sizes[free] / max(sizes[keep] + sizes[free], TINY)
    growth = (1 / (1 - share)) ** (1 / len(shape))
    for part in np.split(A, offsets(shape)[1:-1]):
        heavy, light = part[:, keep], part[:, free]
        sign = 1.0 if heavy @ light >= 0 else -1.0
        unit = sign * light / max(float(np.linalg.norm(light)), TINY)
        part[:, keep] = growth * ((1 - share) * heavy + share * np.linalg.norm(heavy) * unit)
    return np.delete(A, free, axis=1)


def _sizes_and_cosines(A: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Norms of the rank-one terms, and the cosines between them."""
    sizes = np.ones(A.shape[1])
    cosines = np.ones((A.shape[1], A.shape[1]))
    for part in np.split(A, offsets(shape)[1:-1]):
        norms = np.linalg.norm(part, axis=0)
        unit = part / np.maximum(norms, TINY)
        sizes *= norms
        cosines *= unit.T @ unit
    return sizes, cosines


def merged_by_information(mixture: Mixture, rank: int) -> Mixture:
    """Merge the components of a mixture at the least loss of information, until ``rank`` are
    left.
    """
    columns, weights = np.array(mixture.columns.T, order="C"), mixture.weights.copy()
    compiled_merge_components()(columns, weights, rank)
    return Mixture(columns[:rank].T.copy(), weights[:rank], mixture.shape)
