"""The expansion of components of a core to factors that a fit can start from."""

from __future__ import annotations

import numpy as np

from smartcpd._strategies.compression.compression import Core

SWEEPS = 5
DEAD = 1e-3
RESEEDED = 0.1
FLOOR = 1e-3


def expanded(
    core: Core, components: list[np.ndarray], nonnegative: list[bool], rng: np.random.Generator
) -> list[np.ndarray]:
    """Factors of the tensor itself; where they must not be negative, a few clipped sweeps of least
    squares make up for what clipping takes away. Components that got lost are drawn anew.
    """
    factors = balanced([U @ A for U, A in zip(core.bases, components, strict=True)])
    if any(nonnegative):
        factors = _with_signs(factors, nonnegative)
        for _ in range(SWEEPS):
            _clipped_sweep(core, factors, nonnegative)
        factors = balanced(factors)
        _reseed(factors, rng)
    factors = [A / s[:, None] for A, s in zip(factors, core.scales.rows, strict=True)]
    factors = [
        np.maximum(A, FLOOR * A.mean()) if bounded else A
        for A, bounded in zip(factors, nonnegative, strict=True)
    ]
    return balanced(factors)


def _with_signs(factors: list[np.ndarray], nonnegative: list[bool]) -> list[np.ndarray]:
    """Columns that are mostly positive, clipped, where they must not be negative; the sign that is
    taken from them goes to a mode that may have it.
    """
    flips = np.ones(factors[0].shape[1])
    out = []
    for A, bounded in zip(factors, nonnegative, strict=True):
        sign = np.where((A * np.abs(A)).sum(axis=0) >= 0, 1.0, -1.0)
        out.append(np.maximum(A * sign, 0.0) if bounded else A)
        flips *= sign if bounded else 1.0
    if not all(nonnegative):
        out[nonnegative.index(False)] = out[nonnegative.index(False)] * flips
    return out


def balanced(factors: list[np.ndarray]) -> list[np.ndarray]:
    """Columns of the same norm in every mode."""
    norms = np.array([np.maximum(np.linalg.norm(A, axis=0), 1e-300) for A in factors])
    size = np.exp(np.log(norms).mean(axis=0))
    return [A * (size / n) for A, n in zip(factors, norms, strict=True)]


def _clipped_sweep(core: Core, factors: list[np.ndarray], nonnegative: list[bool]) -> None:
    """Alternating least squares on what the core says of the tensor, clipped at 0; in place."""
    inner = [U.T @ A for U, A in zip(core.bases, factors, strict=True)]
    grams = np.array([A.T @ A for A in factors])
    left = core.core
    for mode in range(len(factors)):
        if mode == 0:
            sums = _summed(left @ inner[-1], inner[1:-1])
        else:
            sums = _summed(left, inner[mode + 1 :])
        gram = np.delete(grams, mode, axis=0).prod(axis=0)
        gram += (1e-6 * np.trace(gram) / len(gram) + 1e-300) * np.eye(len(gram))
        solved = np.linalg.solve(gram, (core.bases[mode] @ sums).T).T
        A = np.maximum(solved, 0.0) if nonnegative[mode] else solved
        factors[mode], grams[mode] = A, A.T @ A
        inner[mode] = core.bases[mode].T @ A
        # What is left of the core once this mode is summed over serves all that follow.
        if mode == 0:
            left = np.moveaxis(np.tensordot(inner[0], left, (0, 0)), 0, -1)
        else:
            left = np.einsum("k...r,kr->...r", left, inner[mode])


def _summed(left: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Sum over all modes but the first, each weighted by a factor; components come last."""
    for A in reversed(others):
        left = np.einsum("akr,kr->ar", left.reshape(-1, *A.shape), A)
    return left.reshape(-1, left.shape[-1])


def _reseed(factors: list[np.ndarray], rng: np.random.Generator) -> None:
    """Draw components that vanished anew, small; in place."""
    weights = np.prod([np.linalg.norm(A, axis=0) for A in factors], axis=0)
    typical = np.median(weights)
    for r in np.flatnonzero(weights < DEAD * typical):
        for A in factors:
            column = rng.random(len(A))
            A[:, r] = column / np.linalg.norm(column) * (RESEEDED * typical) ** (1 / len(factors))
