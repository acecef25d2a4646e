"""Operations on factors as plain arrays: scales, cosines, and how components pair up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SAME = 0.95
"""Two components count as the same from this product of cosines on."""


def unit_columns(A: np.ndarray, norm: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Columns divided by their norms, and the norms; columns of zeros stay zero."""
    # Dividing by the largest entry first keeps squares of tiny or huge entries from vanishing or
    # overflowing.
    peak = np.abs(A).max(axis=0)
    scaled = A / np.where(peak > 0, peak, 1.0)
    norms = np.linalg.norm(scaled, ord=norm, axis=0)
    return scaled / np.where(norms > 0, norms, 1.0), norms * peak


def mode_cosines(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> np.ndarray:
    """Cosines between the columns of two lists of factors, N x R_first x R_second."""
    pairs = zip(first, second, strict=True)
    return np.stack([unit_columns(A)[0].T @ unit_columns(B)[0] for A, B in pairs])


def best_pairs(similarity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns, each used once at most, whose entries have the largest sum."""
    if similarity.shape[0] > similarity.shape[1]:
        columns, rows = best_pairs(similarity.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    favourites = similarity.argmax(axis=1)
    if np.unique(favourites).size == favourites.size:
        # Every row can have its favourite, so that no other choice is better.
        return np.arange(favourites.size), favourites
    # Imported here because scipy.optimize alone takes a third of a second to import.
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return rows, columns


def signs(a: np.ndarray) -> np.ndarray:
    """Minus one for negative entries, one for all others."""
    return np.where(a < 0, -1, 1).astype(a.dtype)


def normalized(
    factors: Sequence[np.ndarray], weights: np.ndarray, norm: int = 2
) -> tuple[list[np.ndarray], np.ndarray]:
    """Factors with columns of unit norm, and the weights with the norms absorbed."""
    columns = [unit_columns(A, norm) for A in factors]
    scales = np.prod([norms for _, norms in columns], axis=0)
    return [unit for unit, _ in columns], weights * scales


def distributed(factors: Sequence[np.ndarray], weights: np.ndarray) -> list[np.ndarray]:
    """Factors with the weights spread evenly over them; the first gets the signs."""
    share = np.abs(weights) ** (1.0 / len(factors))
    first, *rest = (A * share for A in factors)
    return [first * signs(weights), *rest]


def balanced(factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Factors of the same model in which a component has the same norm in every mode."""
    return distributed(*normalized(factors, np.ones(factors[0].shape[1])))


def equal_modes(factors: Sequence[np.ndarray]) -> list[list[int]]:
    """Groups of modes whose factors are the same to the last bit: fitted as one, they stay so.

    Modes of a single row are alone: their factors are scales, which may be equal by convention.
    """
    groups: list[list[int]] = []
    for mode, A in enumerate(factors):
        for group in groups:
            if len(A) > 1 and np.array_equal(factors[group[0]], A):
                group.append(mode)
                break
        else:
            groups.append([mode])
    return groups


def count_free(factors: Sequence[np.ndarray]) -> int:
    """Count the numbers that a model is free to choose; the scale of a component counts once, and
    so does a factor that modes share.
    """
    sizes = [len(factors[group[0]]) for group in equal_modes(factors)]
    return factors[0].shape[1] * (sum(sizes) - len(sizes) + 1)


def same_components(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], least: float = SAME
) -> bool:
    """Whether every component of one list has a counterpart in the other, in any size and order."""
    pairs = zip(first, second, strict=True)
    cosines = np.prod([unit_columns(A)[0].T @ unit_columns(B)[0] for A, B in pairs], axis=0)
    if not np.isfinite(cosines).all():
        return False
    return bool(cosines[best_pairs(cosines)].min() >= least)
