"""Merging of components, from too many to the right number.

A run that starts with exactly as many components as it should end with often wastes one: two share
the work of one while another, usually a weak one, is missing, and sampled steps leave such a place
very slowly. A run that starts with half as many again finds all of them at once; those that double
another, or that fit nothing, are then merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smartcpd._common.stacked import parts
from smartcpd._kernels.merging import compiled_merge_components
from smartcpd._methods.mixture import Mixture
from smartcpd._objectives.fisher_weights import Marginals
from smartcpd._problem.problem import Problem

TINY = 1e-300
POWER_STEPS = 6
"""Number of rounds over the modes in which the nearest rank-one term is looked for."""


def merged(A: np.ndarray, problem: Problem) -> np.ndarray:
    """Merge components, the cheapest pair first, until ``problem.rank`` are left.

    What a merge costs counts most where the loss curves most.
    """
    # The weights are a rough estimate: any random cells will do, and the same ones for every fit.
    weights = Marginals.at(A, problem.shape, problem.loss, np.random.default_rng(0))
    root = np.sqrt(weights.rows)[:, None]
    terms = Terms(parts(root * A, problem.shape))
    while terms.sizes.size > problem.rank:
        terms.merge_cheapest()
    merged_parts = parts(np.concatenate(terms.factors()) / root, problem.shape)
    rules = zip(merged_parts, problem.constraints, problem.phases[0].mirrors, strict=True)
    return np.concatenate([c.apply(P, mirror=m) for P, c, m in rules])


class Terms:
    """Rank-one terms: unit columns for each mode, the size of each term, and what merging any two
    of them into one would cost.
    """

    def __init__(self, factors: list[np.ndarray]) -> None:
        norms = [np.maximum(np.linalg.norm(A, axis=0), TINY) for A in factors]
        self.units = [A / norm for A, norm in zip(factors, norms, strict=True)]
        self.sizes = np.prod(norms, axis=0)
        self.cosines = np.array([U.T @ U for U in self.units])
        nearest = NearestTerm.to_sums(self.sizes[:, None], self.sizes, self.cosines)
        self.costs = nearest.error
        np.fill_diagonal(self.costs, np.inf)

    def factors(self) -> list[np.ndarray]:
        """Columns of equal size in all modes."""
        scale = self.sizes ** (1 / len(self.units))
        return [U * scale for U in self.units]

    def merge_cheapest(self) -> None:
        """Put the nearest single term in the place of two, where that is nearest."""
        keep, free = np.unravel_index(int(np.argmin(self.costs)), self.costs.shape)
        pair = NearestTerm.to_sums(
            self.sizes[keep], self.sizes[[free]], self.cosines[:, keep, [free]]
        )
        for mode, U in enumerate(self.units):
            U[:, keep] = pair.of_first[mode] * U[:, keep] + pair.of_second[mode] * U[:, free]
        self.sizes[keep] = pair.size[0]
        self._leave_out(int(free))
        self._measure_again(int(keep - (keep > free)))

    def _leave_out(self, r: int) -> None:
        self.units = [np.delete(U, r, axis=1) for U in self.units]
        self.sizes = np.delete(self.sizes, r)
        self.cosines = np.delete(np.delete(self.cosines, r, axis=1), r, axis=2)
        self.costs = np.delete(np.delete(self.costs, r, axis=0), r, axis=1)

    def _measure_again(self, r: int) -> None:
        """Measure a term that has changed against all others."""
        to_others = np.array([U.T @ U[:, r] for U in self.units])
        self.cosines[:, r, :] = self.cosines[:, :, r] = to_others
        costs = NearestTerm.to_sums(self.sizes[r], self.sizes, to_others).error
        costs[r] = np.inf
        self.costs[r, :] = self.costs[:, r] = costs


@dataclass(frozen=True)
class NearestTerm:
    """The rank-one terms that are nearest to sums of two, as far as power steps find them.

    In every mode the column lies in the plane of the two columns: it is ``of_first`` times the
    first plus ``of_second`` times the second, all of length one. ``error`` is the squared distance
    that is left. Two terms that are nearly parallel in every mode leave little even if one is far
    smaller: what differs in a single mode is taken up by that mode.
    """

    size: np.ndarray
    of_first: np.ndarray
    of_second: np.ndarray
    error: np.ndarray

    @classmethod
    def to_sums(cls, first: np.ndarray, second: np.ndarray, cosines: np.ndarray) -> NearestTerm:
        """Approximate sums of terms of these sizes, with their cosines, a mode along the first
        axis.
        """
        # Columns of the second that point the other way are turned; its size takes the sign.
        signs = np.where(cosines < 0, -1.0, 1.0)
        near = np.minimum(np.abs(cosines), 1.0)
        b = second * np.prod(signs, axis=0)
        a = np.broadcast_to(first, b.shape)
        with_first, with_second = _leaning(a, b, near)
        p, q = np.empty_like(near), np.empty_like(near)
        size = np.zeros_like(b)
        for _ in range(POWER_STEPS):
            for mode in range(len(near)):
                others = np.arange(len(near)) != mode
                p[mode] = a * np.prod(with_first[others], axis=0)
                q[mode] = b * np.prod(with_second[others], axis=0)
                size = _length(p[mode], q[mode], near[mode])
                p[mode] /= size
                q[mode] /= size
                with_first[mode] = p[mode] + q[mode] * near[mode]
                with_second[mode] = p[mode] * near[mode] + q[mode]
        whole = a**2 + b**2 + 2 * a * b * np.prod(near, axis=0)
        return cls(size, p, signs * q, np.maximum(whole - size**2, 0.0))


def _leaning(a: np.ndarray, b: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines of a first guess with both columns, mode by mode: a mean of the two, or
    the larger one where they are opposite.
    """
    larger = (a >= np.abs(b)).astype(float)
    share = np.where(b >= 0, a / np.maximum(a + np.abs(b), TINY), larger)
    norm = _length(share, 1 - share, near)
    return (share + (1 - share) * near) / norm, (share * near + 1 - share) / norm


def _length(p: np.ndarray, q: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the length of p times a unit vector plus q times another, given their cosine."""
    return np.sqrt(np.maximum(p**2 + q**2 + 2 * p * q * near, TINY))


def merged_by_information(mixture: Mixture, rank: int) -> Mixture:
    """Merge the components of a mixture at the least loss of information, until ``rank`` are
    left.
    """
    columns, weights = np.array(mixture.columns.T, order="C"), mixture.weights.copy()
    compiled_merge_components()(columns, weights, rank)
    return Mixture(columns[:rank].T.copy(), weights[:rank], mixture.shape)
