"""Standard errors from the information about all loadings together, or row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smartcpd._common.stacked import offsets
from smartcpd._inference.intervals.information import bends_of, gauge, information, places
from smartcpd._inference.intervals.question import Question
from smartcpd.errors import InvalidDataError


class Errors(NamedTuple):
    """Standard errors of normalised loadings and of weights; for loadings at a bound, slope and
    curvature of the loss along them.
    """

    factors: list[np.ndarray]
    weights: np.ndarray
    slopes: list[np.ndarray]
    bends: list[np.ndarray]


def joint_errors(question: Question, dispersion: float) -> Errors:
    """Return errors with all loadings estimated at once, for about the work of inverting the whole
    matrix.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    factors = question.factors
    W = bends_of(factors, question.loss, question.storage, question.knows_noise)
    # The matrix is about numbers, each of which has several places where modes share a factor.
    number = places(factors, question.groups)
    M = _summed(information(factors, W), number)
    first = np.unique(number, return_index=True)[1]
    free = np.concatenate([held.reshape(-1) for held in _free(question)])[first]
    Z = gauge(factors, question.known, question.groups)[first][free]
    F = M[np.ix_(free, free)]
    # There is no information about the scale of a component in one mode against another, and no
    # normalised loading depends on it: any number will do.
    fixed = F + (np.trace(F) / max(float((Z**2).sum()), 1e-300)) * (Z @ Z.T)
    diagonal = np.sqrt(np.maximum(np.diag(fixed), 1e-300))
    try:
        scaled = fixed / np.outer(diagonal, diagonal)
        factor = cho_factor(scaled)
        inverse = cho_solve(factor, np.eye(len(scaled))) / np.outer(diagonal, diagonal)
    except LinAlgError:
        inverse = np.full_like(fixed, np.inf)
    if not np.isfinite(inverse).all() or np.diag(inverse).min() < 0:
        raise InvalidDataError(
            f"X does not determine all loadings of {question.model!r}: two components are alike, "
            "or one of them is empty. Fit a lower rank, or use method='bootstrap'."
        )
    covariance = np.zeros_like(M)
    covariance[np.ix_(free, free)] = dispersion * inverse
    held = ~free
    cross = M[np.ix_(held, free)]
    bends = np.zeros(free.size)
    bends[held] = np.diag(M)[held] - np.einsum("hf,fg,hg->h", cross, inverse, cross, optimize=True)
    return _normalised(question, covariance[np.ix_(number, number)], bends[number])


def _summed(M: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return a matrix about numbers from one about the places they have."""
    if number[-1] == len(number) - 1:
        return M
    out = np.zeros((number.max() + 1, number.max() + 1))
    np.add.at(out, (number[:, None], number[None, :]), M)
    return out


def conditional_errors(question: Question, dispersion: float) -> Errors:
    """Return errors of every row as if the other factors were known: somewhat too small, but
    cheap.
    """
    rows = zip(question.sums, _free(question), question.per_row, strict=True)
    variances, bends = [], []
    for sums, free, e in rows:
        B = sums.bend * (free[:, :, None] & free[:, None, :])
        np.einsum("jrr->jr", B)[:] += np.where(free, 1e-12 * np.abs(B).max(), 1.0)
        inverse = np.linalg.pinv(B, hermitian=True)
        diagonal = np.einsum("jrr->jr", inverse)
        variances.append(np.where(free, dispersion * np.maximum(diagonal, 0.0), 0.0) / e**2)
        bends.append(np.maximum(np.einsum("jrr->jr", sums.bend), 0.0) * e**2)
    norms = [np.linalg.norm(A, axis=0) for A in question.rates]
    errors, relative = [], np.zeros(question.model.rank)
    alike = {n: len(group) for group in question.groups for n in group}
    for n, (A, variance, norm) in enumerate(zip(question.rates, variances, norms, strict=True)):
        u = A / np.where(norm > 0, norm, 1.0)
        total = (u**2 * variance).sum(axis=0)
        spread = (1.0 - 2.0 * u**2) * variance + u**2 * total
        errors.append(np.sqrt(np.maximum(spread, 0.0)) / norm)
        # What modes share errs in all of them alike.
        relative += alike[n] * total / norm**2
    weights = np.abs(question.model.weights) * np.sqrt(relative)
    return Errors(errors, weights, _slopes(question, norms), _per_norm(bends, norms, 2))


def _free(question: Question) -> list[np.ndarray]:
    """Say which entries the data determines."""
    free = [~(held | known) for held, known in zip(question.at_bound, question.known, strict=True)]
    for part, rows in zip(free, question.unseen, strict=True):
        part[rows] = False
    return free


def _normalised(question: Question, covariance: np.ndarray, bends: np.ndarray) -> Errors:
    """Convert errors of loadings with a shared scale to columns of unit length and their
    weights.
    """
    factors, rank = question.rates, question.model.rank
    starts = offsets([len(A) for A in factors]) * rank
    scale = np.concatenate([np.repeat(e, rank) for e in question.per_row])
    covariance, bends = covariance / np.outer(scale, scale), bends * scale**2
    norms = [np.linalg.norm(A, axis=0) for A in factors]
    errors = [np.zeros_like(A) for A in factors]
    weights = np.zeros(rank)
    for r in range(rank):
        index = np.concatenate(
            [np.arange(starts[n] + r, starts[n + 1], rank) for n in range(len(factors))]
        )
        own = covariance[np.ix_(index, index)]
        rows = offsets([len(A) for A in factors])
        gradient = np.zeros(index.size)
        for n, A in enumerate(factors):
            part = slice(rows[n], rows[n + 1])
            u = A[:, r] / norms[n][r]
            turned = own[part, part] - np.outer(u, u @ own[part, part])
            turned = turned - np.outer(turned @ u, u)
            errors[n][:, r] = np.sqrt(np.maximum(np.diag(turned), 0.0)) / norms[n][r]
            gradient[part] = question.model.weights[r] * u / norms[n][r]
        weights[r] = np.sqrt(max(float(gradient @ own @ gradient), 0.0))
    parts = [bends[starts[n] : starts[n + 1]].reshape(-1, rank) for n in range(len(factors))]
    return Errors(errors, weights, _slopes(question, norms), _per_norm(parts, norms, 2))


def _slopes(question: Question, norms: list[np.ndarray]) -> list[np.ndarray]:
    pairs = zip(question.sums, question.per_row, strict=True)
    return _per_norm([sums.slope * e for sums, e in pairs], norms, 1)


def _per_norm(parts: list[np.ndarray], norms: list[np.ndarray], power: int) -> list[np.ndarray]:
    """Return the derivatives of columns of unit length by their loadings."""
    return [part * norm**power for part, norm in zip(parts, norms, strict=True)]
