"""Distances between estimated factors and known ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smartcpd._common.factors import best_pairs, mode_cosines, unit_columns
from smartcpd._fitting.model import CPModel
from smartcpd.errors import IncompatibleError

Factors = CPModel | Sequence[np.ndarray]


def factor_mse(A: Factors, B: Factors) -> float:
    """Return the mean squared error of factors, each mode matched on its own.

    Columns of each mode are scaled to unit l2 norm and paired by the best permutation and the best
    signs; its error is (1/R) sum_r ||a_r - b_r||². The result is the mean over the modes.

    Parameters
    ----------
    A, B : CPModel or list of factor matrices
        They have the same shape and rank. Weights play no part.

    Returns
    -------
    float
        Between 0 (equal up to order, sign and scale) and 2 (all columns orthogonal).

    See Also
    --------
    factor_mse_joint : one permutation for all modes.
    factor_mse_authors : the same on the scale of the paper's authors' code.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import metrics
    >>> A = [np.eye(2), np.array([[3.0, 0.0], [4.0, 1.0]])]
    >>> B = [np.eye(2), np.array([[4.0, 0.0], [3.0, 1.0]])]
    >>> round(metrics.factor_mse(A, B), 4)
    0.02
    """
    first, second = _same_rank(A, B)
    matches = [
        best_pairs(cosines) for cosines in np.abs(mode_cosines(first.factors, second.factors))
    ]
    return _mean_error(first, second, matches)


def factor_mse_joint(A: Factors, B: Factors) -> float:
    """Return `factor_mse` with one permutation for all modes, as components have.

    It is never below `factor_mse`. Signs are still the best of each mode.

    Parameters
    ----------
    A, B : CPModel or list of factor matrices
        They have the same shape and rank. Weights play no part.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import metrics
    >>> swapped = np.eye(2)[:, ::-1]
    >>> metrics.factor_mse_joint([np.eye(2), np.eye(2)], [np.eye(2), swapped])
    1.0
    """
    first, second = _same_rank(A, B)
    match = best_pairs(np.abs(mode_cosines(first.factors, second.factors)).sum(axis=0))
    return _mean_error(first, second, [match] * first.order)


def factor_mse_authors(A: Factors, B: Factors) -> float:
    """Return `factor_mse` as the paper's authors' code scales it: N/R times as large.

    That code sums over the N modes and divides by the rank once more. Compare it only with itself.

    Parameters
    ----------
    A, B : CPModel or list of factor matrices
        They have the same shape and rank. Weights play no part.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import metrics
    >>> A = [np.eye(2), np.eye(2), np.array([[3.0, 0.0], [4.0, 1.0]])]
    >>> B = [np.eye(2), np.eye(2), np.array([[4.0, 0.0], [3.0, 1.0]])]
    >>> round(metrics.factor_mse_authors(A, B), 4)
    0.02
    """
    first, second = _same_rank(A, B)
    return factor_mse(first, second) * first.order / first.rank


def factor_match_score(A: Factors, B: Factors, weights: bool = False) -> float:
    """Return how well the components of two models match: 1 if they are the same, 0 if orthogonal.

    The score is the mean over matched components of the product over modes of the absolute cosines
    between columns, under the permutation that makes it largest.

    Parameters
    ----------
    A, B : CPModel or list of factor matrices
        They have the same shape. If their ranks differ, every component of the smaller is matched
        and the others are ignored.
    weights : bool
        Multiply each product by ``1 - |u - v| / max(u, v)``, with u and v the sizes of the two
        components (weight times norms of the columns), as in Acar, Dunlavy, Kolda and Mørup,
        *Scalable tensor factorizations for incomplete data* (2011).

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from smartcpd import metrics
    >>> swapped = np.eye(2)[:, ::-1]
    >>> metrics.factor_match_score([np.eye(2), np.eye(2)], [swapped, swapped])
    1.0
    """
    first, second = _same_shape(A, B)
    score = np.abs(mode_cosines(first.factors, second.factors)).prod(axis=0)
    if weights:
        score = score * _size_agreement(first, second)
    # Rounding can lift the cosine of equal columns just above 1.
    return min(1.0, float(score[best_pairs(score)].mean()))


def _size_agreement(first: CPModel, second: CPModel) -> np.ndarray:
    u = np.abs(first.normalize().weights)[:, None]
    v = np.abs(second.normalize().weights)[None, :]
    larger = np.maximum(u, v)
    agreement: np.ndarray = 1.0 - np.abs(u - v) / np.where(larger > 0, larger, 1.0)
    return agreement


def _mean_error(
    first: CPModel, second: CPModel, matches: Sequence[tuple[np.ndarray, np.ndarray]]
) -> float:
    errors = []
    for A, B, (i, j) in zip(first.factors, second.factors, matches, strict=True):
        a, b = unit_columns(A)[0][:, i], unit_columns(B)[0][:, j]
        signs = np.where(np.sum(a * b, axis=0) < 0, -1.0, 1.0)
        # Differences are squared, because 2 - 2 cos would lose half the digits of a small error.
        errors.append(np.sum((a - signs * b) ** 2) / first.rank)
    return float(np.mean(errors))


def _same_shape(A: Factors, B: Factors) -> tuple[CPModel, CPModel]:
    first, second = (M if isinstance(M, CPModel) else CPModel(M) for M in (A, B))
    if first.shape != second.shape:
        raise IncompatibleError(
            f"Factors of different shapes cannot be compared: {first!r} and {second!r}. "
            "Give the modes in the same order."
        )
    return first, second


def _same_rank(A: Factors, B: Factors) -> tuple[CPModel, CPModel]:
    first, second = _same_shape(A, B)
    if first.rank != second.rank:
        raise IncompatibleError(
            f"Factors of different ranks, {first.rank} and {second.rank}, have no mean squared "
            "error. Use factor_match_score, which matches the components of the smaller."
        )
    return first, second
